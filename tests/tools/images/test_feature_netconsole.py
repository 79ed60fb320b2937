"""Where the kernel's messages go: routes and neighbours are real, in network namespaces; modprobe is told, not run."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.processes import run
from tests.tools.namespaces import namespace

pytestmark = pytest.mark.tools

SCRIPT = Path(__file__).parents[3] / "images/recipes/features/netconsole/usr/lib/netboot/netconsole.sh"
MAC = "52:54:00:00:00:01"
"""Of the segment's router, which is a receiver too."""


@dataclass(frozen=True)
class Machine:
    """A machine with one card, in a network namespace."""

    folder: Path
    namespace: int

    def start(self, asked: str) -> tuple[int, list[str]]:
        """Exit status, and the lines that the unit says."""
        command_line = self.folder / "cmdline"
        command_line.write_text(f"ro netboot.netconsole=of.another.layer netboot.netconsole={asked} quiet\n")
        path = f"{self.folder}/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
        done = subprocess.run(
            ["nsenter", f"--net=/proc/{self.namespace}/ns/net", "sh", str(SCRIPT)],
            env={"PATH": path, "NETBOOT_CMDLINE": str(command_line)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, (done.stdout + done.stderr).splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    (tmp_path / "bin").mkdir()
    modprobe = tmp_path / "bin/modprobe"
    modprobe.write_text('#!/bin/sh\necho "modprobe $*"\n')
    modprobe.chmod(0o755)
    with namespace(tmp_path, "machine") as inside, namespace(tmp_path, "router") as other:
        link = f"ip link add eth0 type veth peer name eth0 address {MAC} netns {other}"
        for command, where in (
            (link, inside),
            ("ip link set eth0 up", inside),
            ("ip link set eth0 up", other),
            ("ip addr add 198.51.100.9/24 dev eth0", inside),
            ("ip addr add 198.51.100.1/24 dev eth0", other),
            ("ip addr add fd00::9/64 dev eth0 nodad", inside),
            ("ip addr add fd00::1/64 dev eth0 nodad", other),
            ("ip route add default via 198.51.100.1", inside),
        ):
            run(command.split(), namespace=where)
        yield Machine(tmp_path, inside)


@pytest.mark.parametrize(
    ("asked", "told", "to", "port", "source"),
    [
        ("198.51.100.1", f"6666@198.51.100.1/{MAC}", "198.51.100.1", 6666, "198.51.100.9"),
        ("77@192.0.2.7", f"77@192.0.2.7/{MAC}", "192.0.2.7", 77, "198.51.100.9"),
        ("77@fd00::1", f"77@fd00::1/{MAC}", "fd00::1", 77, "fd00::9"),
    ],
    ids=["neighbour", "behind-a-router", "ipv6"],
)
def test_the_card_and_the_next_hop_are_found(
    machine: Machine, asked: str, told: str, to: str, port: int, source: str
) -> None:
    assert machine.start(asked) == (
        0,
        [
            "modprobe -r netconsole",
            f"modprobe netconsole netconsole=@{source}/eth0,{told}",
            f"netboot-netconsole: kernel messages go to {to} port {port} (UDP), from {source} by eth0 and {MAC}",
        ],
    )


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("198.51.100.3", "198.51.100.3 does not answer on eth0"),
        ("fd01::1", "RTNETLINK answers: Network is unreachable"),
        ("loghost", 'Error: any valid prefix is expected rather than "loghost".'),
    ],
    ids=["silent", "no-route", "name"],
)
def test_whom_nothing_can_be_sent_to_is_told(machine: Machine, asked: str, why: str) -> None:
    assert machine.start(asked) == (1, [f"netboot-netconsole: no kernel messages to {asked}: {why}"])
