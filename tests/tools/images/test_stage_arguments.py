"""The shell that reads the network's arguments, under busybox: beside the rule that inventories are held to."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from images.values.network_arguments import fault
from tests.tools.images.boot_stage import Stage
from tests.unit.test_network_arguments import BONDED, DONE, LINES, REFUSED

pytestmark = pytest.mark.tools

SHOW = 'echo "$METHOD|$LINK|$BOND|$BOND_OPTIONS|$VLAN|$CARDS|$(echo $NAMESERVERS)|$DRIVERS|$CONFIGURED"'


def quoted(words: list[str]) -> str:
    return " ".join(f"'{word}'" for word in words)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, min_size=20, max_size=40))
@example([line.split() for line in (*DONE, *(line for line, _ in REFUSED))])
def test_the_shell_and_the_inventory_refuse_the_same_in_the_same_words(stage: Stage, lines: list[list[str]]) -> None:
    script = "".join(f'read_network_arguments {quoted(words)} && echo || echo "$REASON"\n' for words in lines)
    assert stage.sh(script).stdout.splitlines() == [fault(words) or "" for words in lines]


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("quiet", "dhcp||||||||"),
        ("ip=auto6 nameserver=fd00::1 nameserver=192.0.2.1", "auto6||||||fd00::1 192.0.2.1||yes"),
        ("ip=enp1s0:dhcp", "dhcp|enp1s0||||enp1s0|||yes"),
        ("netboot.nic_driver=ice,mlx5_core", "dhcp|||||||ice mlx5_core|yes"),
        (
            f"{BONDED} vlan=vlan5:bond0 ip=vlan5:auto6",
            (
                "auto6|vlan5|bond0|mode=802.3ad lacp_rate=fast xmit_hash_policy=layer3+4 miimon=100|"
                "vlan5|BOOTIF enp59s0f1np1|||yes"
            ),
        ),
        ("vlan=enp1s0.5:enp1s0 ip=enp1s0.5:dhcp", "dhcp|enp1s0.5|||enp1s0.5|enp1s0|||yes"),
    ],
)
def test_what_the_rest_of_the_stage_is_given(stage: Stage, line: str, read: str) -> None:
    assert stage.sh(f"read_network_arguments {quoted(line.split())}; {SHOW}").stdout == f"{read}\n"


def card(stage: Stage, name: str, path: str, mac: str, driver: str, **more: str) -> None:
    """A network card as sysfs shows it: its device at a path of the PCI bus, or behind virtio."""
    device = stage.folder / "devices" / path
    net = stage.folder / "net" / name
    (stage.folder / "drivers" / driver).mkdir(parents=True, exist_ok=True)
    device.mkdir(parents=True)
    net.mkdir(parents=True)
    (device / "driver").symlink_to(stage.folder / "drivers" / driver)
    (net / "device").symlink_to(device)
    for key, value in {"type": "1", "address": mac, "operstate": "up", "dev_port": "0", **more}.items():
        (net / key).write_text(f"{value}\n")


def cards(stage: Stage) -> str:
    card(stage, "eth0", "pci0000:00/0000:00:02.0/virtio1", "52:54:00:00:00:00", "virtio_net")
    card(stage, "eth1", "pci0000:3a/0000:3b:00.1", "52:54:00:00:00:01", "mlx5_core", phys_port_name="p1")
    card(stage, "eth2", "pci0001:00/0001:05:1f.0", "52:54:00:00:00:02", "mlx4_en", dev_port="1")
    card(stage, "eth3", "vmbus/a1b2", "52:54:00:00:00:03", "hv_netvsc")
    return f"NET={stage.folder}/net\n"


def test_a_card_has_the_names_that_systemd_would_give_it(stage: Stage) -> None:
    script = cards(stage) + 'for nic in eth0 eth1 eth2 eth3; do echo "$nic" $(names_of $nic); done'
    assert stage.sh(script).stdout.splitlines() == [
        "eth0 enx525400000000 enp0s2 enp0s2f0",
        "eth1 enx525400000001 enp59s0f1 enp59s0f1np1",
        "eth2 enx525400000002 enP1p5s31d1 enP1p5s31f0d1",
        "eth3 enx525400000003",
    ]


@pytest.mark.parametrize(
    ("token", "found"),
    [
        ("enp59s0f1np1", "eth1"),
        ("enx525400000003", "eth3"),
        ("BOOTIF", "eth2"),
        ("enp59s0f0np0", "none"),
        ("enp59s0f", "none"),
    ],
)
def test_a_card_is_found_by_mac_path_or_because_it_booted(stage: Stage, token: str, found: str) -> None:
    script = f'{cards(stage)}card_named {token} && echo "$nic" || echo none'
    assert stage.sh(script, MAC="52:54:00:00:00:02").stdout == f"{found}\n"


def test_the_card_that_booted_comes_first_and_missing_ones_are_said(stage: Stage) -> None:
    script = cards(stage) + 'cards_there || echo "$(echo $found)|$(echo $missing)"'
    wanted = "enp0s2 enp9s0 enp59s0f1"
    assert stage.sh(script, MAC="52:54:00:00:00:01", CARDS=wanted).stdout == "eth1 eth0|enp9s0\n"


def test_cards_of_other_drivers_are_no_cards(stage: Stage) -> None:
    assert stage.sh(cards(stage) + "nics", DRIVERS="mlx5_core hv_netvsc").stdout.split() == ["eth1", "eth3"]


def test_a_card_within_a_bond_keeps_its_own_address(stage: Stage) -> None:
    given = cards(stage)
    (stage.folder / "net/eth1/bonding_slave").mkdir()
    (stage.folder / "net/eth1/bonding_slave/perm_hwaddr").write_text("52:54:00:00:00:01\n")
    (stage.folder / "net/eth1/address").write_text("52:54:00:00:00:00\n")
    assert stage.sh(given + 'nic_of_mac && echo "$nic"', MAC="52:54:00:00:00:01").stdout == "eth1\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ip=enp9s0:dhcp", "no network: enp9s0 is to be made of enp9s0, and there are "),
        (
            "bond=bond0:enp0s2:mode=active-backup ip=bond0:dhcp",
            "no bond bond0: the initrd has no module bonding; add it to modules.initrd of the recipe",
        ),
        (
            "vlan=vlan5:enp0s2 ip=vlan5:dhcp",
            "no VLAN vlan5: the initrd has no module 8021q; add it to modules.initrd of the recipe",
        ),
    ],
)
def test_what_cannot_be_made_is_said_with_its_remedy(stage: Stage, line: str, reason: str) -> None:
    given = f'{cards(stage)}mkdir -p net/x\nip() {{ [ $2 != add ]; }}\nwait_for() {{ shift; "$@"; }}\n'
    done = stage.sh(f'{given}read_network_arguments {quoted(line.split())}\nbring_up_network || echo "$REASON"')
    assert done.stdout.splitlines()[-1].startswith(reason)


SYSFS = """echo() {
  case $1 in
    -bond0) rm -r net/bond0 ;;
    +bond0) mkdir net/bond0 net/bond0/bonding && : >net/bond0/bonding/slaves || return 1 ;;
  esac
  printf '%s\\n' "$*"
}
ip() { :; }
: >net/bonding_masters
"""
"""What the kernel's module bonding does with the files that it is told by."""


def test_a_bond_of_a_try_that_failed_is_made_anew(stage: Stage) -> None:
    """It may lack its options, and a bond without a mode is round robin; and it has the address of who came first."""
    tried = f"{cards(stage)}{SYSFS}echo +bond0 >net/bonding_masters\necho fast >net/bond0/bonding/lacp_rate\n"
    made = "make_bond && grep -r . net/bond0/bonding | sort\n"
    given = {"BOND": "bond0", "BOND_OPTIONS": "mode=802.3ad miimon=100", "PORTS": "eth0"}
    assert stage.sh(tried + made, **given).stdout.splitlines() == [
        "net/bond0/bonding/miimon:100",
        "net/bond0/bonding/mode:802.3ad",
        "net/bond0/bonding/slaves:+eth0",
    ]


def test_the_speed_is_that_of_the_link_with_the_address(stage: Stage) -> None:
    """Not of the card that was looked for last, which may not be there."""
    given = f"{cards(stage)}mkdir -p net/bond0\necho 50000 >net/bond0/speed\necho 1 >net/bond0/carrier\n"
    tried = "by_dhcp() { :; }\nleave_units() { :; }\nip() { :; }\ntry_nic bond0 1 >/dev/null\n"
    assert stage.sh(f"{given}{tried}nic=''\nlink_speed").stdout == "50000\n"
