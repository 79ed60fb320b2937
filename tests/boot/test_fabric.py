"""Two machines of one network: one by two cards in an LACP group of a switch, one by one card. How fast it is between
them is measured by the operator's own command, over soft-RoCE."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.machines import Hardware, machine
from tests.boot.data_centre import BOOT_SECONDS, BuiltImage, DataCentre, data_centre, entry, hardware
from tests.boot.lacp_switch import LacpGroup, lacp_group
from tests.boot.ways_in import SshAuthority, lets_in, ssh, ssh_authority, ssh_config
from tests.processes import wait_for

pytestmark = pytest.mark.boot
BONDED = replace(hardware(1), others=("52:54:00:aa:01:01",))
SINGLE = hardware(2)
BOND = "bond=bond0:enp0s3,BOOTIF:mode=802.3ad,miimon=100,lacp_rate=fast"
LACP_SECONDS = 180.0
"""Three seconds after the last word of the other end it is gone; the rest is for a busy machine."""
ROCE = "modprobe -a crc32_generic rdma_rxe && rdma link add rxe0 type rxe netdev {card}"


def test_an_lacp_group_carries_a_machine_and_the_fabric_is_measured(built_erofs: BuiltImage, folder: Path) -> None:
    with contextlib.ExitStack() as stack:
        here = stack.enter_context(data_centre(folder, built_erofs, origins=True))
        assert here.net is not None
        ca = ssh_authority(folder / "ssh")
        start(here, ca)
        group = stack.enter_context(lacp_group(here.net, "first", "second"))
        stack.enter_context(here.switched_on(SINGLE))
        bonded = stack.enter_context(machine(BONDED, group.ports, here.folder, built_erofs.accelerator))
        bonded.wait_for_console(r"netboot: bond0 has address \S+", BOOT_SECONDS)
        both_are_together(here, group)
        addresses = {one.name: booted(here, one) for one in (BONDED, SINGLE)}
        both_are_together(here, group)

        operator = ca.key("operator", "-n", "sre", "-V", "-5m:+1h")
        the_fabric_is_measured(here, addresses, operator)
        one_cable_is_enough(here, group, addresses[BONDED.name], operator)


def start(here: DataCentre, ca: SshAuthority) -> None:
    """The service, of a site that lets operators in; both machines are declared."""
    with here.site.config.open("a") as config:
        config.write(f"ssh: {{authorities: {ca.public}, principals: [sre]}}\n")
    here.site.netboot("config", "bundle")
    declare(here, {})
    here.service.start()
    here.service.set_channel("stable", here.built.digest)


def declare(here: DataCentre, addresses: Mapping[str, str]) -> None:
    """Both machines; `addresses`: where others reach them, as far as it is known."""

    def of(one: Hardware, more: str = "") -> str:
        known = f", node: {{addresses: [{addresses[one.name]}]}}" if one.name in addresses else ""
        return f"- {{{entry(one, more + known)}}}\n"

    here.site.declare(
        f"machines:\n{of(BONDED, ', class: two-ports')}{of(SINGLE)}"
        f"classes:\n- {{name: two-ports, kernel_arguments: ['{BOND}', 'ip=bond0:dhcp']}}\n"
        "profiles:\n- {name: default, channel: stable, pcrs: none, kernel_arguments: [netboot.ssh=sre]}\n"
        "channels:\n- {name: stable}\n"
    )


def booted(here: DataCentre, one: Hardware) -> str:
    """Wait until it is up, by all steps of a boot in which nothing failed, and lets people in, which on a busy machine
    is later; its address."""
    here.service.wait_for(one.name, "Booted", 2 * BOOT_SECONDS)
    here.wait_for_trace(one.name)
    address: str = here.latest(one.name)["reached"][-1]["peer"]
    wait_for(lambda: lets_in(address), BOOT_SECONDS)
    return address


def both_are_together(here: DataCentre, group: LacpGroup) -> None:
    """By the switch, which has negotiated with one machine, by the address of the card that booted."""
    wanted = {"first": BONDED.mac, "second": BONDED.mac}

    def together() -> bool:  # on a busy machine the other end may be silent for so long that it is gone for a moment
        return group.together() == wanted and "lacp_status: negotiated\n" in group.show("bond/show")

    here.service.wait_until("both ports are one link", together, LACP_SECONDS)


def the_fabric_is_measured(here: DataCentre, addresses: Mapping[str, str], operator: Path) -> None:
    """Both ways between the bond and the single card, by `netboot fabric check` as a person runs it."""
    for one, card in ((BONDED, "bond0"), (SINGLE, "eth0")):
        made = ssh(addresses[one.name], operator, ROCE.format(card=card))
        assert made.returncode == 0, made.stderr
    declare(here, addresses)
    via = f"ssh -F {ssh_config(here.folder, operator, addresses)} {{machine}}"
    # one message of 8 MiB takes seconds here, and what is not through within the time is not counted
    options = ("--all", "--via", via, "--seconds", "30", "--least", "0.001", "--output", "json")
    said = here.site.netboot("fabric", "check", *options)
    (here.folder / "fabric.json").write_text(said)
    told: dict[str, Any] = json.loads(said)
    assert told["planned"] == told["measured"] == 2, told["pairs"]
    assert {(one["from"], one["to"]) for one in told["pairs"]} == {
        (BONDED.name, SINGLE.name),
        (SINGLE.name, BONDED.name),
    }
    assert set(told["hosts"]) == set(addresses)
    assert told["judged"] and told["slow"] == {"hosts": [], "pairs": []}


def one_cable_is_enough(here: DataCentre, group: LacpGroup, address: str, operator: Path) -> None:
    """The port of the card that booted is dead, and only LACP tells: the card's link stays."""
    aggregator = "grep -A 3 '^Active Aggregator' /proc/net/bonding/bond0; cat /sys/class/net/eth*/carrier"

    def said() -> list[str]:
        done = ssh(address, operator, aggregator)
        return [line.strip() for line in done.stdout.splitlines() if "Number of ports" in line or line in "01"]

    here.service.wait_until(
        "the machine has both ports", lambda: said() == ["Number of ports: 2", "1", "1"], LACP_SECONDS
    )
    group.cut(group.ports.interface)
    here.service.wait_until("the switch has one port", lambda: group.together() == {"second": BONDED.mac}, LACP_SECONDS)
    here.service.wait_until(
        "the machine has one port", lambda: said() == ["Number of ports: 1", "1", "1"], LACP_SECONDS
    )
    assert ssh(address, operator, "echo here").stdout == "here\n"
