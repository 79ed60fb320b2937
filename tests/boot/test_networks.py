"""How machines come to an address where DHCP on the card that booted is not the way: bond and VLAN, IPv6 alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from lab.machines import machine
from lab.network import Tap
from lab.vlan import Vlan, trunk, vlan
from tests.boot.data_centre import BOOT_SECONDS, LOG_SECONDS, BuiltImage, DataCentre, data_centre, entry, hardware

pytestmark = pytest.mark.boot
TWO_PORTS = replace(hardware(1), others=("52:54:00:aa:01:01",))


def declare(here: DataCentre, machine: str, *arguments: str) -> None:
    """The machine, whose class has these arguments; its profile asks for what it shows."""
    here.site.declare(
        f"machines:\n- {{{machine}, class: two-ports}}\n"
        f"classes:\n- {{name: two-ports, kernel_arguments: {list(arguments)}}}\n"
        "profiles:\n- {name: default, channel: stable, pcrs: none, kernel_arguments: [shown]}\n"
        "channels:\n- {name: stable}\n"
    )


def shown(console: str) -> list[str]:
    """What tests/boot/overlay/etc/show-network said of the root."""
    return [line.partition("shown: ")[2].strip() for line in console.splitlines() if "shown: " in line]


def taken_over(here: DataCentre, ports: Tap, bond: str, tagged: Vlan) -> list[str]:
    """Boot with a VLAN on a bond. The service is reached by the lease's classless route alone; systemd-networkd goes
    on with the lease and leaves bond and cards alone. What the root showed."""
    assert here.net is not None
    declare(here, entry(TWO_PORTS), bond, "vlan=bond0.5:bond0", "ip=bond0.5:dhcp", "netboot.nic_driver=virtio_net")
    with machine(TWO_PORTS, ports, here.folder, here.built.accelerator) as running:
        here.service.wait_for(TWO_PORTS.name, "Booted", BOOT_SECONDS)
        here.wait_for_trace(TWO_PORTS.name)
        running.wait_for_console("shown: all", BOOT_SECONDS)
        address = running.wait_for_console(rf"bond0\.5 has address ({tagged.prefix}\.1\d\d)/24", LOG_SECONDS)[1]
        there = shown(running.console.text)
    assert {
        "bond0 mtu 1500",
        "bond0.5 mtu 1400",
        f"bond0.5 inet {address}/24",
        f"{here.net.host} via {tagged.prefix}.1 dev bond0.5",
        "search rack-1.example example",
        f"nameserver {tagged.prefix}.1",
        f"lease NTP={here.net.inside}",
        f"lease ADDRESS={address}",
        "Slave Interface: eth0",
        "Slave Interface: eth1",
    } <= {line.partition(" proto ")[0] for line in there}
    assert there.count("Link Failure Count: 0") == 2
    assert not [line for line in there if line.startswith("failed ")]
    return there


def test_a_vlan_on_a_bond_whose_lease_is_honoured_in_full(built_erofs: BuiltImage, folder: Path) -> None:
    """Of two cards, one named by its MAC and one as the card that booted; by its PCI path: test_fabric.py."""
    with data_centre(folder, built_erofs) as here:
        assert here.net is not None
        ports, other = here.net.tap("first", "second"), f"enx{TWO_PORTS.others[0].replace(':', '')}"
        with trunk(here.net, 5) as interface, vlan(here.net, interface, here.net.inside) as tagged:
            there = taken_over(here, ports, f"bond=bond0:{other},BOOTIF:mode=active-backup,miimon=50", tagged)
    assert "Bonding Mode: fault-tolerance (active-backup)" in there
    assert "MII Polling Interval (ms): 50" in there


def test_ipv6_alone_and_a_root_that_makes_a_bond_of_the_card_that_booted(built_erofs: BuiltImage, folder: Path) -> None:
    """From iPXE to the root nobody has an IPv4 address; the address, by the card's MAC, is the bond's in the end."""
    mine = hardware(1)
    with data_centre(folder, built_erofs, mode="ipv6") as here:
        assert here.net is not None
        declare(here, entry(mine), "ip=auto6", "remade")
        with here.switched_on(mine) as running:
            here.service.wait_for(mine.name, "Booted", BOOT_SECONDS)
            here.wait_for_trace(mine.name)
            running.wait_for_console("shown: all", BOOT_SECONDS)
            address = running.wait_for_console(r"eth0 has address (\S+)/64", LOG_SECONDS)[1]
            there = shown(running.console.text)
    assert address == f"{here.net.prefix.removesuffix(':')}5054:ff:feaa:1"
    assert f"bond7 inet6 {address}/64" in there
    assert "Slave Interface: eth0" in there
    assert not [line for line in there if " inet " in line or line.startswith("failed ")]
