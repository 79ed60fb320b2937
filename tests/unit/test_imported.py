"""Lists of machines: CSV, Redfish, NetBox. What each value becomes, every fault with its place, and on any text nothing
but faults."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.machines.from_csv import COLUMNS, read_csv
from netboot.machines.from_netbox import read_netbox
from netboot.machines.from_redfish import read_redfish
from netboot.machines.imported import Listed, in_order, left_out, wrong

NEEDED = "the first line names the columns: name, one of macs, uuid and serial, and what else is to be said of them"
NO_MAC = "not a MAC address (twelve hexadecimal digits, with ':', '-' or nothing between)"
UNSAID = "is not said: fill it in"
QUOTE = (
    'a quote (") is opened here, and none closes it before a comma or the end of a line: close it, or take it out; '
    "the lines after this one were not looked at"
)
NO_NAME = "must be lower-case letters, digits, '-' and '.', at most 63, beginning and ending with a letter or digit"
LONG = "S" * 131_073
NO_ROW = (
    "is no row of a CSV (field larger than field limit (131072)): correct it; the lines after it were not looked at"
)
UUID = "38947555-7742-3448-3784-823347823834"


def table(text: str | bytes) -> Listed:
    return read_csv(text if isinstance(text, bytes) else text.encode(), "r.csv")


def declared(read: Listed) -> list[dict[str, Any]]:
    assert list(read.faults) == []
    return [item.declared for item in read.items]


def all_faults(read: Listed) -> list[str]:
    return in_order(read, wrong(read.items))


def test_every_column_of_a_table() -> None:
    row = {
        "name": "gpu-001",
        "macs": "52:54:00:00:00:01; 52-54-00-00-00-02,525400000003",
        "uuid": UUID,
        "serial": "CZ 1",
        "ek_sha256": "a1" * 32,
        "profile": "compute",
        "class": "hgx",
        "rack": "r1",
        "position": "17",
        "zone": "hall-2",
        "region": "eu",
        "tiers": "leaf-7 spine-1",
        "accelerator_domain": "nvl-3",
        "architecture": "arm64",
        "cluster": "two",
        "node": "node-1",
        "labels": "gpu=h100 spare=",
        "taints": "gpu=h100:NoSchedule",
        "addresses": "192.0.2.7 2001:db8::7",
        "identity": "nonce",
        "enabled": "FALSE",
    }
    assert row.keys() == COLUMNS.keys()
    text = io.StringIO()
    writer = csv.DictWriter(text, [*row])
    writer.writeheader()
    writer.writerow(row)
    read = table(text.getvalue())
    assert declared(read) == [
        {
            "name": "gpu-001",
            "match": {
                "macs": ["52:54:00:00:00:01", "52-54-00-00-00-02", "525400000003"],
                "uuid": UUID,
                "serial": "CZ 1",
                "ek_sha256": "a1" * 32,
            },
            "profile": "compute",
            "class": "hgx",
            "rack": "r1",
            "position": 17,
            "topology": {
                "zone": "hall-2",
                "region": "eu",
                "tiers": ["leaf-7", "spine-1"],
                "accelerator_domain": "nvl-3",
            },
            "architecture": "arm64",
            "cluster": "two",
            "node": {
                "name": "node-1",
                "labels": {"gpu": "h100", "spare": ""},
                "taints": ["gpu=h100:NoSchedule"],
                "addresses": ["192.0.2.7", "2001:db8::7"],
            },
            "identity": "nonce",
            "enabled": False,
        }
    ]
    assert all_faults(read) == []


def test_what_spreadsheets_write_and_what_a_list_leaves_out() -> None:
    read = table('\ufeffname , serial,rack,class\r\n\r\n"gpu-001",S1,,hgx\r\n,,,\r\ngpu-002, S2 ,r2,')
    left_out(read.items, {"rack": "r1", "profile": "compute"})
    assert [(item.at, item.declared) for item in read.items] == [
        ("r.csv:3", {"name": "gpu-001", "match": {"serial": "S1"}, "class": "hgx", "rack": "r1", "profile": "compute"}),
        ("r.csv:5", {"name": "gpu-002", "match": {"serial": "S2"}, "rack": "r2", "profile": "compute"}),
    ]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", [f"r.csv:1: is empty; {NEEDED}"]),
        ("name,profile\n", [f"r.csv:1: {NEEDED}"]),
        ("name,macs\n\n", ["r.csv:1: the list has no machine in it"]),
        (
            "name,mac,name,warranty\n",
            [
                "r.csv:1: column 'name' is here twice",
                "r.csv:1: unknown column 'mac'; did you mean 'macs'?",
                f"r.csv:1: unknown column 'warranty'; {NEEDED}",
            ],
        ),
        (
            b"name,serial\ng\xe9,S\ngpu-002,S2\ngpu-003,\xff\n",
            [
                'r.csv:2: is not UTF-8 text (byte 0xe9): save the list as "CSV UTF-8"',
                'r.csv:4: is not UTF-8 text (byte 0xff): save the list as "CSV UTF-8"',
            ],
        ),
        ('name,serial,profile\ngpu-001,S1,p\n"gpu-002', [f"r.csv:3: {QUOTE}"]),
        ('name,serial,profile\n"a","S\r\n1""2\n","p\n\nb,"S,2",p\nc,S3,p\n', [f"r.csv:4: {QUOTE}"]),
        ('name,serial,profile\na,"19" rack",p\nB,S2,p\n', [f"r.csv:2: {QUOTE}"]),
        (f'name,serial,profile\na,"S1,p\n{LONG}', [f"r.csv:2: {QUOTE}"]),
        (f"name,serial,profile\na,{LONG},p\nB,S2,p\n", [f"r.csv:2: {NO_ROW}"]),
        (
            "name;serial\na;S1\n",
            ["r.csv:1: unknown column 'name;serial'; cells are divided by commas, not by semicolons: save the list so"],
        ),
        (
            "name,serial,profile,labels,enabled\nx,S1,p,gpu,\nx,S2,p,a=1 a=2,1\n",
            [
                "r.csv:2: labels 'gpu': 'gpu' is no label: write key=value, with blanks between several",
                "r.csv:3: labels 'a=1 a=2': the label 'a' is here twice",
                "r.csv:3: enabled '1': write true or false; nothing is true",
                "r.csv:3: name 'x': machine 'x' is declared twice, first in r.csv:2",
            ],
        ),
        (
            "name,serial,profile,rack,position\nx,S1,p,r1,17\ny,S2,p,r1,17\nz,S3,p,,3\nv,S4,p,r1,-1\nw,S5,p,r1,101\n",
            [
                "r.csv:3: position '17': unit 17 of rack r1 is of two machines, 'y' and 'x' in r.csv:2",
                "r.csv:4: position '3': is a unit of no rack: say `rack`, too, or leave it out",
                "r.csv:5: position '-1': write the number of a unit, counted from the floor: 17",
                "r.csv:6: position '101': must be 100 at most",
            ],
        ),
        (
            "name,serial,profile\n,S1,p\nx,S2,\n",
            [f"r.csv:2: name: {UNSAID}", "r.csv:3: profile: is not said: fill it in, or say --profile for all"],
        ),
        (
            "name,serial\nw,S0\n,S1\nx,S2\n",
            [
                "r.csv:2: profile: 3 machines say none, this one first: say --profile for all of them, or fill it in",
                f"r.csv:3: name: {UNSAID}",
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_table(text: str | bytes, faults: list[str]) -> None:
    assert all_faults(table(text)) == faults


FINE = st.integers(0, 2**24 - 1).map(lambda number: f"52:54:00:{number:06x}")
BAD_NAMES = st.sampled_from(["", "GPU", "-a", "a b", "a_b", "ä", "x" * 64])
BAD_MACS = st.sampled_from(["", "52:54", "01:00:5e:00:00:01", "0" * 12, "525400000000 zz"])


ROWS = st.lists(
    st.tuples(st.none() | BAD_NAMES, st.none() | BAD_MACS, st.booleans(), st.booleans()), min_size=1, max_size=12
)


@given(ROWS, st.none() | st.tuples(st.integers(0, 11), st.integers(0, 2)))
def test_every_wrong_line_and_no_other_is_named(
    rows: list[tuple[str | None, str | None, bool, bool]], stray: tuple[int, int] | None
) -> None:
    """Up to the line of a `stray` quote, which is before a cell and closed by none."""
    lines, bad = ["name,macs,profile"], set()
    for number, (name, mac, surplus, quoted) in enumerate(rows):
        said = (name if name is not None else f"m-{number}", mac if mac is not None else f"5254.0000.{number:04x}", "p")
        cells = [*said, *(["surplus"] if surplus else [])]
        here = stray is not None and stray[0] == number
        cells = [f'"{cell}"' for cell in cells] if quoted and not here else cells
        if stray is not None and here:
            cells[stray[1]] = f'"{cells[stray[1]]}'
        lines.append(",".join(cells))
        if (stray is None or number <= stray[0]) and (name is not None or mac is not None or surplus or here):
            bad.add(f"r.csv:{len(lines)}")
    assert {fault.partition(": ")[0] for fault in all_faults(table("\n".join(lines)))} == bad


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f"name,macs,labels\n{text}".encode()))
def test_any_text_is_a_list_or_has_faults(data: bytes) -> None:
    read = table(data)
    assert read.items or read.faults
    all_faults(read)


def nic(mac: str | None, *, permanent: str | None = None, **more: Any) -> dict[str, Any]:
    """As DMTF's EthernetInterface has it."""
    value: dict[str, Any] = {"@odata.type": "#EthernetInterface.v1_12_2.EthernetInterface", "Id": "1", "Name": "NIC"}
    return value | {"MACAddress": mac} | ({"PermanentMACAddress": permanent} if permanent is not None else {}) | more


def system(*nics: Any, **more: Any) -> dict[str, Any]:
    """In the form of the example of ComputerSystem in DMTF's DSP0268 and of its mockup `public-rackmount1`, its
    EthernetInterfaces expanded as DSP0266 has it."""
    return {
        "@odata.type": "#ComputerSystem.v1_22_0.ComputerSystem",
        "@odata.id": "/redfish/v1/Systems/437XR1138R2",
        "Id": "437XR1138R2",
        "Name": "Catfish System",
        "SystemType": "Physical",
        "AssetTag": "Chicago-45Z-2381",
        "SerialNumber": "437XR1138R2",
        "UUID": UUID.upper(),
        "HostName": "web483.example",
        "Memory": {"@odata.id": "/redfish/v1/Systems/437XR1138R2/Memory"},
        "EthernetInterfaces": {
            "@odata.id": "/redfish/v1/Systems/437XR1138R2/EthernetInterfaces",
            "@odata.type": "#EthernetInterfaceCollection.EthernetInterfaceCollection",
            "Members@odata.count": len(nics),
            "Members": list(nics),
        },
    } | more


def redfish(value: Any, name_from: str = "HostName") -> Listed:
    return read_redfish(json.dumps(value).encode(), "s.json", name_from)


def test_a_byte_order_mark_of_a_list_is_no_part_of_it() -> None:
    text = json.dumps(system()).encode()
    assert read_redfish(b"\xef\xbb\xbf" + text, "s.json", "HostName") == read_redfish(text, "s.json", "HostName")


def test_a_system_of_redfish() -> None:
    nics = (
        nic("12:44:6A:3B:04:11", permanent="12:44:6A:3B:04:11"),
        nic("12:44:6A:3B:88:90", permanent="12:44:6A:3B:88:91"),
        nic("12:44:6A:3B:04:11", EthernetInterfaceType="Virtual"),
        nic(None),
        nic("00:00:00:00:00:00"),
        nic("12:44:6a:3b:04:11"),
        nic("be:3a:f2:b6:05:9f", Id="ToManager"),
    )
    assert declared(redfish(system(*nics))) == [
        {
            "name": "web483.example",
            "match": {
                "uuid": UUID.upper(),
                "serial": "437XR1138R2",
                "macs": ["12:44:6A:3B:04:11", "12:44:6A:3B:88:91"],
            },
        }
    ]


def test_many_systems_and_what_they_are_called() -> None:
    one, other = system(nic("02:00:00:00:00:01")), system(nic("02:00:00:00:00:02"), SerialNumber="Z-2", UUID="0" * 32)
    collection = {"@odata.type": "#ComputerSystemCollection.ComputerSystemCollection", "Members": [one]}
    read = redfish([collection, other], "SerialNumber")
    assert [(item.at, item.declared["name"]) for item in read.items] == [
        ("s.json, system 1", "437xr1138r2"),
        ("s.json, system 2", "z-2"),
    ]
    assert list(read.items[1].declared["match"]) == ["serial", "macs"]


def test_what_is_wrong_with_systems() -> None:
    link = {"@odata.id": "/redfish/v1/Systems/1"}
    good = nic("02:00:00:00:00:01")
    read = redfish(
        [
            system(good, HostName=None),
            system(nic("02:00"), HostName="a", SerialNumber="A-1", UUID="1-2"),
            link,
            system(EthernetInterfaces=link, HostName="b", SerialNumber="B-1", UUID=None),
            system(link, HostName="c", SerialNumber="C-1", UUID=None),
            {"@odata.type": "#Chassis.v1_25_0.Chassis"},
            system(HostName="d", SerialNumber="D-1", UUID=None, EthernetInterfaces=None),
            "x",
            system(HostName="e f", SerialNumber="E-1", UUID=None),
        ]
    )
    left_out(read.items, {"profile": "compute"})
    expand = "is a link: ask with $expand, or put in what it leads to"
    assert all_faults(read) == [
        f"s.json, system 3: {expand}",
        "s.json, system 6: is no ComputerSystem, but '#Chassis.v1_25_0.Chassis'",
        "s.json, system 8: is no ComputerSystem: an object is one",
        f"s.json, system 1: HostName: {UNSAID}, or say by --name-from which other property machines are called by",
        f"s.json, system 2: MACAddress '02:00': {NO_MAC}",
        "s.json, system 2: UUID '1-2': not a UUID (8-4-4-4-12 hexadecimal digits)",
        f"s.json, system 4: EthernetInterfaces: {expand}",
        f"s.json, system 5: EthernetInterfaces: {expand}",
        "s.json, system 7: EthernetInterfaces: is not there: leave out what is no machine, or put them in",
        f"s.json, system 9: HostName 'e f': {NO_NAME}",
    ]
    page = {"Members": [system(good)], "Members@odata.nextLink": "/redfish/v1/Systems?$skip=1"}
    words = "a collection is not whole (Members@odata.nextLink): put its pages into one list"
    assert redfish(page).faults == [f"s.json: {words}"]
    assert redfish([]).faults == ["s.json: no system is in there"]
    assert read_redfish(b"{", "s.json", "HostName").faults[0].startswith("s.json: not JSON: ")


def device(number: int, name: str | None, **more: Any) -> dict[str, Any]:
    """As `DeviceSerializer` of NetBox 4 answers it (netbox/dcim/api/serializers_/devices.py)."""
    url = f"https://netbox.example/api/dcim/devices/{number}/"
    brief = {"id": 1, "url": "https://netbox.example/api/dcim/x/1/", "display": "x", "description": ""}
    return {
        "id": number,
        "url": url,
        "display": name,
        "name": name,
        "device_type": {**brief, "manufacturer": {**brief, "name": "Dell", "slug": "dell"}, "model": "XE9680"},
        "role": {**brief, "name": "server", "slug": "server"},
        "serial": "",
        "asset_tag": None,
        "rack": {**brief, "name": "R1"},
        "position": 11.0 + number,
        "status": {"value": "active", "label": "Active"},
        "primary_ip4": {**brief, "address": "192.0.2.7/24"},
    } | more


def interface(of: int, name: str, mac: str | None, kind: str = "25gbase-x-sfp28", **more: Any) -> dict[str, Any]:
    """As its `InterfaceSerializer` does (device_components.py); `mac_addresses` since NetBox 4.2."""
    nested = {"id": of, "url": f"https://netbox.example/api/dcim/devices/{of}/", "display": f"GPU-{of}"}
    return {
        "id": 900 + of,
        "device": {**nested, "name": f"GPU-{of}", "description": ""},
        "name": name,
        "type": {"value": kind, "label": "x"},
        "enabled": True,
        "lag": None,
        "mac_address": mac,
        "mac_addresses": [{"id": 1, "display": mac, "mac_address": mac, "description": ""}] if mac else [],
        "mgmt_only": False,
    } | more


def answer(*results: Any, count: int | None = None, following: str | None = None) -> dict[str, Any]:
    return {"count": count or len(results), "next": following, "previous": None, "results": list(results)}


def netbox(*values: Any) -> Listed:
    return read_netbox([(f"{'ab'[number]}.json", json.dumps(value).encode()) for number, value in enumerate(values)])


INTERFACES = (
    interface(1, "eth0", "02:00:00:00:00:01", mac_addresses=[{"mac_address": "02:00:00:00:00:0A"}]),
    interface(1, "eth1", "02:00:00:00:00:02"),
    interface(1, "bond0", "02:00:00:00:00:01", "lag"),
    interface(1, "idrac", "02:00:00:00:00:03", mgmt_only=True),
    interface(1, "eth2", None),
    interface(2, "eth0", "02:00:00:00:00:04"),
    interface(7, "swp1", "02:00:00:00:00:05"),
)


def test_devices_of_netbox_with_their_interfaces() -> None:
    devices = answer(device(1, "GPU-1", serial="CZ1"), device(2, "gpu-2", rack=None), device(7, "gpu-7", position=2.5))
    assert declared(netbox(devices, answer(*INTERFACES))) == [
        {
            "name": "gpu-1",
            "match": {"serial": "CZ1", "macs": ["02:00:00:00:00:01", "02:00:00:00:00:0A", "02:00:00:00:00:02"]},
            "rack": "r1",
            "position": 12,
        },
        {"name": "gpu-2", "match": {"macs": ["02:00:00:00:00:04"]}},
        {"name": "gpu-7", "match": {"macs": ["02:00:00:00:00:05"]}, "rack": "r1"},
    ]
    assert [item.at for item in netbox([devices, answer(*INTERFACES)]).items] == [
        "a.json, device 1",
        "a.json, device 2",
        "a.json, device 7",
    ]


def test_interfaces_alone_are_of_machines() -> None:
    read = netbox([*INTERFACES])
    assert [(item.at, item.declared["name"]) for item in read.items] == [
        ("a.json, device 1", "gpu-1"),
        ("a.json, device 2", "gpu-2"),
        ("a.json, device 7", "gpu-7"),
    ]


def test_what_is_wrong_with_answers_of_netbox() -> None:
    devices = answer(device(1, None, serial="CZ1"), device(2, "b"), {"id": 3, "display": "brief"}, "x", device(1, "c"))
    read = netbox(devices, answer(interface(1, "eth0", "02:00")))
    left_out(read.items, {"profile": "compute"})
    neither = "is neither a device nor an interface"
    assert all_faults(read) == [
        f"a.json, object 3: {neither}, as the REST API answers them without `brief` and `fields`",
        f"a.json, object 4: {neither}",
        "a.json, device 1: is here twice",
        f"a.json, device 1: mac_address '02:00': {NO_MAC}",
        "a.json, device 2: match: needs at least one of macs, uuid and serial: nothing could be recognised by this",
    ]
    nameless = netbox(answer(device(3, None, serial="CZ3")))
    left_out(nameless.items, {"profile": "compute"})
    words = "name: is not said: name the device in NetBox, or leave it out of the list"
    assert all_faults(nameless) == [f"a.json, device 3: {words}"]
    first = answer(device(1, "a", serial="1"), count=2, following="https://netbox.example/api/dcim/devices/?offset=1")
    second = answer(device(2, "b", serial="2"), count=2) | {"previous": "https://netbox.example/api/dcim/devices/"}
    words = "only 1 of 2 results are in there: put in the other pages, to which `next` leads"
    assert netbox(first).faults == [f"a.json: {words}"]
    assert len(declared(netbox([first, second]))) == 2
    assert netbox(answer()).faults == ["a.json: no device is in there"]
    assert netbox("x").faults == [f"a.json, object 1: {neither}"]


KEYS = (
    *("Members", "EthernetInterfaces", "UUID", "SerialNumber", "HostName", "MACAddress", "@odata.type"),
    *("results", "next", "count", "id", "device", "device_type", "name", "rack", "serial", "mac_addresses"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_machines_or_has_faults(value: Any) -> None:
    data = json.dumps(value).encode()
    for read in (read_redfish(data, "j", "HostName"), read_netbox([("j", data)])):
        assert read.items or read.faults
        all_faults(read)
