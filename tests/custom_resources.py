"""Items of an inventory that files and custom resources are both asked about: who refuses what."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from images.values import strict
from images.values.strict import Document, FaultsError
from netboot.kube.resources.definitions import objects_of
from netboot.machines.declared import KINDS, items_of
from netboot.machines.inventory import load_inventory

BASE = """
channels: [{name: stable}]
profiles: [{name: default, channel: stable}]
classes: [{name: hgx}]
racks: [{name: r1}]
"""
"""What items of below refer to."""
Value = dict[str, Any]


class Item(NamedTuple):
    """An item of a file: the file's key (`machines`), and what stands below it."""

    key: str
    value: Value

    @property
    def document(self) -> Document:
        """The file that has it alone."""
        return Document("tried.yaml", {self.key: [self.value]}, {})

    @property
    def custom_resource(self) -> Value:
        """The same as an object, in the namespace `default`."""
        (made,) = objects_of(items_of(self.document), "default")
        return made


def faults(folder: Path, item: Item) -> list[str]:
    """What the service says of it, in an inventory that has what it refers to. `folder`: empty, or used for this."""
    (folder / "base.yaml").write_text(BASE)
    try:
        load_inventory(folder, sent=[item.document])
    except FaultsError as error:
        return [fault.message for fault in error.faults]
    return []


def items(text: str) -> list[Item]:
    """All that a file declares."""
    value = strict.parse(text, "inventory.yaml").value
    return [Item(key, each) for key in KINDS for each in value.get(key, ())]


def machine(**more: Any) -> Item:
    """A machine with this said of it besides."""
    return Item("machines", {"name": "tried", "match": {"serial": "CZ1"}, "profile": "default", **more})


def match(**said: Any) -> Item:
    """A machine that is recognised so."""
    return machine(match=said)


def node(**said: Any) -> Item:
    """A machine whose Node is to be so."""
    return machine(node=said)


def profile(**more: Any) -> Item:
    """A profile with this said of it besides."""
    return Item("profiles", {"name": "tried", "channel": "stable", **more})


def channel(**more: Any) -> Item:
    """A channel with this said of it besides."""
    return Item("channels", {"name": "tried", **more})


def hardware(**more: Any) -> Item:
    """A class with this said of it besides."""
    return Item("classes", {"name": "tried", **more})


def rack(**more: Any) -> Item:
    """A rack with this said of it besides."""
    return Item("racks", {"name": "tried", **more})


def window(**more: Any) -> Item:
    """A maintenance window with this said of it besides."""
    return Item("maintenance", {"name": "tried", "start": "22:00", "end": "05:00", **more})


DIGEST = "3f1c" * 16
UUID = "86a9f546-d31b-4ba2-9bbb-303b61bcf8d1"
TAKEN = {
    "a machine of which everything is said": machine(
        former_names=["gpu-1", "old.one"],
        cluster="prod",
        match={"macs": ["52-54-00-AB-CD-EF", "5254.00ab.cdf0", "525400abcdf1"], "uuid": UUID.upper(), "serial": "C Z/1"}
        | {"ek_sha256": DIGEST},
        rack="r1",
        topology={"zone": "hall-2", "region": "eu", "tiers": ["leaf-7", "spine-1"], "accelerator_domain": "nvl-3"},
        architecture="arm64",
        enabled=False,
        node={
            "name": "n1.example",
            "labels": {"example.com/gpu": "h100", "node-role.kubernetes.io/control-plane": ""},
            "taints": ["gpu=h100:NoSchedule", "netboot.dev/unchecked:NoExecute", "netboot.dev/held=Held:NoSchedule"],
            "addresses": ["192.0.2.1", "2001:db8::1"],
        },
        identity="nonce",
        pcrs={"0": [], "7": [DIGEST], "23": [DIGEST, DIGEST]},
        health={
            "gpus": 8,
            "ib_rate_gbps": 400.5,
            "nic_firmware": {"MT_0000000838": "28.39.2048"},
            "ports": ["mlx5_0/1"],
        }
        | {"thresholds": {"gpu_celsius": 80}, "memory_gib": 2000},
    ),
    "whatever was measured": machine(pcrs="none"),
    "what is not said, as null": machine(match={"macs": [], "uuid": None, "serial": "CZ1"}, rack=None),
    "a profile of which everything is said": profile(
        kernel_arguments=["console=ttyS1,115200n8", "netboot.debug=shell", "ip=dhcp"],
        pcrs={"7": [DIGEST]},
        deadlines={"Lost": "2h", "HealthGated": "none", "Booted": 600, "Attested": "0s"},
        boot_limit="none",
    ),
    "a channel of which everything is said": channel(
        description="Ümläute, → and 100 %",
        image=DIGEST,
        strategy={"canary": 2, "max_unavailable": "100%", "per_rack": 1, "bake": "168h", "deadline": 60}
        | {"allow_bare": True, "allow_local_data": False, "split_domains": True, "auto_undo": True},
    ),
    "shares as numbers": channel(strategy={"max_unavailable": 999_999, "bake": "0s"}),
    "a share as a number in quotes": channel(strategy={"max_unavailable": "12"}),
    "a class of which everything is said": hardware(
        memory_gib=2048,
        gpus={"count": 8, "model": "H100"},
        nics=[{"name": "compute", "model": "ConnectX-7", "count": 8, "speed_gbps": 0.1}],
        disks=[{"count": 8, "size_gb": 3840}],
        firmware={"bios": "1.2", "MT_0000000838": "28.39.2048"},
        origins=["http://192.0.2.7:8080", "http://[2001:db8::7]/a/b/"],
        kernel_arguments=["console=ttyS0"],
        active={"skip": ["nccl"], "floors": {"memory_gbs": 100}},
        thresholds={"gpu_celsius": 80.5},
        skip_checks=["cables"],
        gate={"required": ["gpu-count", "own-mine"], "on_failure": "report"},
        boot_limit=15,
        vetoes={"namespaces": ["training"], "max_wait": "24h"},
        remedies={"act": True, "wait": "10m", "actions": ["reboot", "reboot", "quarantine"], "fleet": "2%"},
    ),
    "a rack": rack(origins=["http://cache"], topology={"zone": "z"}),
    "a window": window(days=["Sun", "Mon"], time_zone="Europe/Berlin"),
}
"""The service takes them, and so do API servers, and give back what they were given."""
REFUSED = {
    "an unknown key": machine(colour="red"),
    "an unknown key further in": node(zone="z"),
    "no match": Item("machines", {"name": "tried", "profile": "default"}),
    "nothing by which it is recognised": match(ek_sha256=DIGEST),
    "nothing by which it is recognised, as null": match(uuid=None, serial=None),
    "an empty list of MACs": match(macs=[]),
    "a MAC of eleven digits": match(macs=["52:54:00:12:34:5"]),
    "a MAC of a group": match(macs=["01:00:5e:00:00:01"]),
    "a MAC of noughts": match(macs=["00:00:00:00:00:00"]),
    "a MAC twice": match(macs=["52:54:00:12:34:56", "52:54:00:12:34:56"]),
    "no UUID": match(uuid="86a9f546"),
    "a UUID of one digit": match(uuid="ffffffff-FFFF-ffff-ffff-ffffffffffff"),
    "a UUID of a vendor": match(uuid="03000200-0400-0500-0006-000700080009"),
    "a placeholder for a serial": match(serial="To Be Filled By O.E.M."),
    "a serial of one digit": match(serial="0-00.0"),
    "a number for a serial": match(serial=12345),
    "no digest": match(ek_sha256=DIGEST[:-1]),
    "a class by another type": machine(**{"class": ["hgx"]}),
    "another architecture": machine(architecture="riscv64"),
    "another identity": machine(identity="password"),
    "a PCR that there is not": machine(pcrs={"24": [DIGEST]}),
    "none and a PCR": machine(pcrs={"none": [], "7": [DIGEST]}),
    "none with a value": machine(pcrs={"none": [DIGEST]}),
    "a label of ours": node(labels={"netboot.dev/accepted": "true"}),
    "a label's key with a blank": node(labels={"a b": "c"}),
    "a label's value with a blank": node(labels={"a": "b c"}),
    "a taint without effect": node(taints=["gpu=h100"]),
    "a taint of ours": node(taints=["netboot.dev/mine:NoSchedule"]),
    "unchecked with a value": node(taints=["netboot.dev/unchecked=x:NoExecute"]),
    "unchecked with less": node(taints=["netboot.dev/unchecked:NoSchedule"]),
    "unattested with less": node(taints=["netboot.dev/unattested:PreferNoSchedule"]),
    "no address": node(addresses=["192.0.2.256"]),
    "a name in the place of an address": node(addresses=["node-1"]),
    "an address twice": node(addresses=["192.0.2.1", "192.0.2.1"]),
    "a former name twice": machine(former_names=["a", "a"]),
    "seventeen former names": machine(former_names=[f"a{number}" for number in range(17)]),
    "nine tiers": machine(topology={"tiers": ["a"] * 9}),
    "less than no GPUs": machine(health={"gpus": -1}),
    "2³¹ GPUs": machine(health={"gpus": 2**31}),
    "half a GPU": machine(health={"gpus": 0.5}),
    "no speed": machine(health={"pcie_gts": 0}),
    "no channel": Item("profiles", {"name": "tried"}),
    "an argument that the service sets": profile(kernel_arguments=["netboot.image=x"]),
    "an argument of ours that nobody reads": profile(kernel_arguments=["netboot.mine"]),
    "an argument with a blank": profile(kernel_arguments=["a b"]),
    "33 arguments": profile(kernel_arguments=[f"a{number}" for number in range(33)]),
    "a deadline that there is not": profile(deadlines={"Lunch": "1h"}),
    "a deadline of days": profile(deadlines={"Lost": "1d"}),
    "a deadline beyond a week": profile(deadlines={"Lost": "169h"}),
    "a deadline beyond a week, in seconds": profile(deadlines={"Lost": 604_801}),
    "a deadline of true": profile(deadlines={"Lost": True}),
    "no boots": profile(boot_limit=0),
    "sixteen boots": profile(boot_limit=16),
    "some boots": profile(boot_limit="some"),
    "half a boot": profile(boot_limit=1.5),
    "one canary": channel(strategy={"canary": 1}),
    "canaries in quotes": channel(strategy={"canary": "2"}),
    "101 %": channel(strategy={"max_unavailable": "101%"}),
    "none of the machines": channel(strategy={"max_unavailable": 0}),
    "0 %": channel(strategy={"max_unavailable": "0%"}),
    "a deadline below a minute": channel(strategy={"deadline": "59s"}),
    "seconds and a half": channel(strategy={"bake": 30.5}),
    "true in quotes, where that is strict": channel(strategy={"allow_bare": "true"}),
    "another effect of a gate": hardware(gate={"on_failure": "explode"}),
    "a version in words": hardware(firmware={"bios": "latest"}),
    "memory of nothing": hardware(memory_gib=0),
    "a card without a model": hardware(nics=[{"count": 8, "speed_gbps": 400}]),
    "vetoes of nobody": hardware(vetoes={"namespaces": [], "max_wait": "1h"}),
    "vetoes for 25 hours": hardware(vetoes={"namespaces": ["a"], "max_wait": "25h"}),
    "remedies at once": hardware(remedies={"wait": "9m"}),
    "remedies at once, in seconds": hardware(remedies={"wait": 599}),
    "quarantine before others": hardware(remedies={"actions": ["quarantine", "reboot"]}),
    "five actions": hardware(remedies={"actions": ["reboot"] * 5}),
    "a URL with TLS": rack(origins=["https://cache"]),
    "a URL with a query": rack(origins=["http://cache/?a=b"]),
    "nine origins": rack(origins=[f"http://cache-{number}" for number in range(9)]),
    "a day twice": window(days=["Mon", "Mon"]),
    "no day": window(days=[]),
    "another day": window(days=["Monday"]),
    "25 o'clock": window(start="25:00"),
}
"""Both refuse them."""
BY_THE_SERVICE_ALONE = {
    "a time zone that is not known": window(time_zone="Mars/Olympus"),
    "a threshold, floor, check or test that there is not": hardware(thresholds={"coffee": 1}),
    "a threshold beyond its unit": hardware(thresholds={"gpu_celsius": 151}),
    "arguments of the network that do not go together": profile(kernel_arguments=["vlan=a"]),
    "a port above 65535": rack(origins=["http://cache:65536"]),
    "a MAC twice, in two spellings": match(macs=["52:54:00:12:34:56", "525400123456"]),
    "an address twice, in two spellings": node(addresses=["2001:db8::1", "2001:DB8:0::1"]),
    "a former name that is its name": machine(former_names=["tried"]),
    "a unit of no rack": machine(position=7),
    "an address that is no single machine's": node(addresses=["127.0.0.1"]),
    "a reference to what is not declared": machine(rack="r2"),
    "another architecture than its class's": machine(**{"class": "hgx", "architecture": "arm64"}),
}
"""By what docs/custom-resources.md calls them."""
BY_THE_API_SERVER_ALONE = {
    "a name with two dots in a row": Item("racks", {"name": "a..b"}),
    "a number in quotes": machine(health={"gpus": "8"}),
    "`true` and `false` in quotes": machine(enabled="true"),
    "`true` for a number": machine(health={"gpus": True}),
    "0 or 1 for `true` and `false`": machine(enabled=1),
    "an empty mapping of PCRs": machine(pcrs={}),
    "blanks before or behind a UUID": match(uuid=f" {UUID}"),
    "an IPv6 address with a zone": node(addresses=["2001:db8::1%eth0"]),
    "an IPv4 address written as IPv6": node(addresses=["::ffff:192.0.2.1"]),
    "more than 64 of one thing": node(labels={f"a{number}": "" for number in range(65)}),
    "a text of more than 1,024 characters": channel(description="x" * 1025),
}
"""Likewise."""
ODD: tuple[object, ...] = (None, True, 0, -1, 1.5, "", "x", "12", "a b", "5%", "15m", "a\n", [], {}, {"x": "y"})


def places(value: object, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place below a value, as keys and numbers."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in below:
        yield (*at, key)
        yield from places(each, (*at, key))


def odd_ones() -> Iterator[tuple[str, Item]]:
    """Items that are taken, with something odd in each of their places; and where, and what that is."""
    for item in TAKEN.values():
        for *above, last in places(item.value):
            for odd in ODD if last != "name" or above else ():
                value = deepcopy(item.value)
                inner: Any = value
                for key in above:
                    inner = inner[key]
                inner[last] = odd
                yield f"{item.key}: {'.'.join(map(str, (*above, last)))}: {odd!r}", Item(item.key, value)


def _optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Value]:
    return st.fixed_dictionaries({}, optional=fields)


_NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
_WORDS = st.text("".join(chr(code) for code in range(32, 127)), min_size=1, max_size=64)
_PLACES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", fullmatch=True)
_COUNTS = st.integers(0, 2**31 - 1)
_DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
_MACS = st.integers(1, 2**46 - 1).map(lambda n: f"{(n >> 40) << 2:02x}{n & (2**40 - 1):010x}")
_SPELT = st.builds(lambda mac, sep: sep.join(mac[at : at + 2] for at in range(0, 12, 2)), _MACS, st.sampled_from(":-."))
MACHINES = st.builds(
    lambda value, name: Item("machines", {**value, "name": name, "profile": "default"}),
    st.fixed_dictionaries(
        {"match": _optional(uuid=st.uuids().map(str)).flatmap(lambda said: _with_macs(said))},
        optional={
            "cluster": _NAMES,
            "topology": _optional(zone=_PLACES, region=_PLACES, tiers=st.lists(_PLACES, max_size=8)),
            "enabled": st.booleans(),
            "identity": st.sampled_from(["tpm", "nonce", "address"]),
            "pcrs": st.just("none")
            | st.dictionaries(st.integers(0, 23).map(str), st.lists(_DIGESTS, max_size=4), min_size=1, max_size=8),
            "node": _optional(
                name=_NAMES,
                labels=st.dictionaries(
                    st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?", fullmatch=True),
                    _PLACES,
                    max_size=8,
                ),
                taints=st.lists(
                    st.from_regex(
                        r"[a-z][a-z0-9.-]{0,60}(=[A-Za-z0-9._-]{0,63})?:(NoSchedule|NoExecute)", fullmatch=True
                    )
                ),
                addresses=st.lists(st.ip_addresses(v=4, network="198.18.0.0/15").map(str), unique=True, max_size=4),
            ),
            "health": _optional(
                gpus=_COUNTS,
                gpu_model=_WORDS,
                memory_gib=st.floats(0, 1_000_000),
                ports=st.lists(_WORDS, max_size=64),
                nic_firmware=st.dictionaries(_WORDS, _WORDS, max_size=16),
            ),
        },
    ),
    _NAMES,
)
"""What files may declare."""


def _with_macs(said: Value) -> st.SearchStrategy[Value]:
    return st.lists(_SPELT, min_size=1, max_size=8, unique_by=lambda mac: "".join(filter(str.isalnum, mac))).map(
        lambda macs: {**said, "macs": macs}
    )
