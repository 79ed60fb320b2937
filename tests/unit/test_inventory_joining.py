"""What is asked of an inventory whose machines join: somebody says the PCR policy, and a node's address is its own."""

import json
from ipaddress import ip_network
from pathlib import Path

import pytest

from images.values.strict import FaultsError
from netboot.config import load_config
from netboot.machines.inventory import load_inventory
from netboot.machines.joining import Joining
from netboot.stores.inventory import joining_of
from tests.sites import make_site

JOINING = Joining({"default": (ip_network("10.96.0.0/12"), ip_network("fd00:96::/112"))})
REMEDY = (
    "write `pcrs: none` (whatever firmware and boot loader were started will do), or the values that are allowed, "
    "in the profile or in each machine"
)


def site(folder: Path, *machines: str, profile: str = ", pcrs: none") -> Path:
    rows = "\n".join(f"- {{name: m{at}, match: {{serial: S{at}}}, profile: p{row}}}" for at, row in enumerate(machines))
    text = f"channels: [{{name: stable}}]\nprofiles:\n- {{name: p, channel: stable{profile}}}\nmachines:\n{rows}\n"
    (folder / "a.yaml").write_text(text)
    return folder


def faults(folder: Path, joining: Joining | None = JOINING) -> list[str]:
    with pytest.raises(FaultsError) as caught:
        load_inventory(folder, joining)
    return [str(fault).replace(f"{folder}/", "") for fault in caught.value.faults]


# -- which PCRs -------------------------------------------------------------------------------------------------------


def test_no_policy_is_never_said_by_omission(tmp_path: Path) -> None:
    site(tmp_path, "", ", pcrs: none", "", profile="")
    words = "nobody says which PCRs its 2 machines must show to join"
    assert faults(tmp_path) == [f"a.yaml:3: profiles[0].name: {words}: {REMEDY}"]
    site(tmp_path, "", ", pcrs: none", profile="")
    assert "which PCRs its machine must show" in faults(tmp_path)[0]


@pytest.mark.parametrize("nothing", ["{}", "null", "~"])
def test_an_empty_policy_says_nothing(tmp_path: Path, nothing: str) -> None:
    site(tmp_path, f", pcrs: {nothing}", profile=f", pcrs: {nothing}")
    assert [fault for fault in faults(tmp_path) if "says nothing" in fault] == [
        f"a.yaml:3: profiles[0].pcrs: says nothing: {REMEDY}",
        f"a.yaml:5: machines[0].pcrs: says nothing: {REMEDY}",
    ]


def test_a_machine_has_its_profile_s_policy_or_its_own(tmp_path: Path) -> None:
    mine, its = "aa" * 32, "bb" * 32
    site(tmp_path, "", ", pcrs: none", f', pcrs: {{"11": [{mine}]}}', profile=f', pcrs: {{"7": [{its}]}}')
    policies = [machine.pcrs for machine in load_inventory(tmp_path, JOINING).machines]
    assert policies == [{"7": (its,)}, {}, {"11": (mine,)}]


def test_where_nobody_joins_nobody_is_asked(tmp_path: Path) -> None:
    assert load_inventory(site(tmp_path, "", profile="")).machines[0].pcrs == {}


# -- taints -----------------------------------------------------------------------------------------------------------


def test_netboot_s_own_taints_keep_pods_off(tmp_path: Path) -> None:
    weak = '"netboot.dev/unchecked:NoSchedule", "netboot.dev/unattested=x:PreferNoSchedule", "a:PreferNoSchedule"'
    valued = '"netboot.dev/unchecked=ChecksFailed:NoExecute"'
    sound = '"netboot.dev/unchecked:NoExecute", "netboot.dev/unattested:NoSchedule"'
    site(tmp_path, f", node: {{taints: [{sound}]}}", f", node: {{taints: [{weak}, {valued}]}}", ", node: {taints: 1}")
    at, leave = "a.yaml:6: machines[1].node.taints", "or leave it to join"
    unattested = "netboot.dev/unattested with PreferNoSchedule keeps no Pod off"
    assert faults(tmp_path)[:3] == [
        f"{at}[0]: netboot.dev/unchecked with NoSchedule lets Pods of the boot before start: write NoExecute, {leave}",
        f"{at}[1]: {unattested}: write NoSchedule or NoExecute, {leave}",
        f"{at}[3]: netboot.dev/unchecked=ChecksFailed: this taint has no value but what the gate gives it",
    ]


def test_what_begins_as_netboot_s_own_keys_do_is_netboot_s_to_give(tmp_path: Path) -> None:
    taken = 'labels: {"netboot.dev/rack": a, "lab.netboot.dev/rack": a}, taints: ["netboot.dev/x=y:NoExecute"]'
    site(tmp_path, ', node: {taints: ["netboot.dev/held=new:NoSchedule"]}', f", node: {{{taken}}}")
    at = "a.yaml:6: machines[1].node"
    assert faults(tmp_path) == [
        f"{at}.labels.netboot.dev/rack: netboot.dev/rack: labels under netboot.dev/ are netboot's own to give",
        f"{at}.taints[0]: netboot.dev/x: taints under netboot.dev/ are netboot's own to give",
    ]


# -- addresses --------------------------------------------------------------------------------------------------------


def node(*addresses: str) -> str:
    return f", node: {{addresses: {json.dumps(addresses)}}}"


def test_an_address_is_one_machine_s_however_it_is_spelt(tmp_path: Path) -> None:
    site(tmp_path, node("192.0.2.7", "2001:db8::7"), node("2001:DB8:0::7"), node("192.0.2.8", "192.0.2.8"))
    key = "machines[1].node.addresses[0]"
    for joining in (JOINING, None):
        assert faults(tmp_path, joining) == [
            f"a.yaml:6: {key}: address 2001:db8::7 is of two machines, 'm1' and 'm0' in a.yaml:5",
            "a.yaml:7: machines[2].node.addresses[1]: address 192.0.2.8 is here twice",
        ]
    site(tmp_path, node("192.0.2.7"), node("::ffff:192.0.2.7"))
    assert "address 192.0.2.7 is of two machines" in faults(tmp_path)[0]


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("127.0.0.1", "a loopback address"),
        ("::1", "a loopback address"),
        ("::ffff:127.0.0.1", "a loopback address"),
        ("169.254.169.254", "a link-local address"),
        ("fe80::1", "a link-local address"),
        ("224.0.0.1", "a multicast address"),
        ("ff02::1", "a multicast address"),
        ("255.255.255.255", "reserved"),
    ],
)
def test_an_address_that_means_another_machine_to_everybody(tmp_path: Path, address: str, kind: str) -> None:
    (fault,) = faults(site(tmp_path, node(address)))
    assert fault.startswith("a.yaml:5: machines[0].node.addresses[0]: ")
    assert fault.endswith(f" is {kind}, and no address of a node")


@pytest.mark.parametrize("address", ["10.96.0.1", "10.111.255.255", "fd00:96::1", "::ffff:10.96.0.1"])
def test_an_address_of_a_service_is_no_node_s(tmp_path: Path, address: str) -> None:
    (fault,) = faults(site(tmp_path, node(address)))
    assert ", which Services of cluster default have, and no address of a node; correct it, or " in fault
    assert fault.endswith("`clusters.default.service_cidrs` in netboot.yaml")
    elsewhere = f"{node(address)}, cluster: other"
    assert len(load_inventory(site(tmp_path, elsewhere), JOINING).machines) == 1


def test_addresses_of_machines_pass(tmp_path: Path) -> None:
    site(tmp_path, node("192.0.2.7", "10.95.255.255", "10.112.0.0", "2001:db8::7", "fd00:97::1", "100.64.0.1"))
    assert len(load_inventory(tmp_path, JOINING).machines[0].node.addresses) == 6


# -- what the configuration knows -------------------------------------------------------------------------------------


def test_what_the_configuration_says_is_what_is_asked(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site")
    assert joining_of(config) is None
    file = tmp_path / "site" / "netboot.yaml"
    plain = file.read_text()
    cluster = '{endpoints: ["https://192.0.2.1:6443"], authority: ca.crt'
    for listen, local in (("192.0.2.1:8443", False), ("127.0.0.1:8443", True), ("[::]:8443", False)):
        file.write_text(
            f'{plain}join: {{listen: "{listen}", url: "https://192.0.2.1:8443"}}\n'
            f'clusters: {{a: {cluster}}}, b: {cluster}, service_cidrs: ["172.20.0.0/16"]}}}}\n'
        )
        joining = joining_of(load_config(file))
        assert joining is not None
        assert joining.local is local
        assert {name: list(map(str, ranges)) for name, ranges in joining.services.items()} == {
            "a": ["10.96.0.0/12"],
            "b": ["172.20.0.0/16"],
        }
    assert len(load_inventory(site(tmp_path, node("127.0.0.1")), JOINING._replace(local=True)).machines) == 1
