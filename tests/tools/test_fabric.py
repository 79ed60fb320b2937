"""`netboot fabric check` with the real iperf3, between hosts that are network namespaces of our own."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.processes import run as tool
from tests.commands import Run
from tests.sites import make_site
from tests.tools import namespaces

pytestmark = pytest.mark.tools

HOSTS = ("a", "b", "c", "d")
MBIT = {"a": 20, "b": 20, "c": 4, "d": 20}
"""What each may send (tbf): little, and a second of it waits at the card, so that none seems slow whose processor was
others' for a moment."""
INVENTORY = "machines:\n" + "".join(
    f"- {{name: {host}, match: {{serial: S{at}}}, profile: p, node: {{addresses: [198.51.100.{at}]}}}}\n"
    for at, host in enumerate(HOSTS, 1)
)


@contextlib.contextmanager
def namespace(folder: Path, name: str) -> Iterator[int]:
    """A process in a network namespace of its own; `folder/name` is that namespace."""
    with namespaces.namespace(folder, name) as holder:
        (folder / name).symlink_to(f"/proc/{holder}/ns/net")
        tool(["ip", "link", "set", "lo", "up"], namespace=holder)
        yield holder


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Path]:
    """Four hosts on a switch; the folder of their namespaces."""
    with contextlib.ExitStack() as stack:
        switch = stack.enter_context(namespace(tmp_path, "switch"))
        tool(["ip", "link", "add", "br0", "type", "bridge", "forward_delay", "0"], namespace=switch)
        tool(["ip", "link", "set", "br0", "up"], namespace=switch)
        for at, host in enumerate(HOSTS, 1):
            inside = stack.enter_context(namespace(tmp_path, host))
            tool(f"ip link add port{at} type veth peer name eth0 netns {inside}".split(), namespace=switch)
            tool(f"ip link set port{at} master br0 up".split(), namespace=switch)
            tool(f"ip addr add 198.51.100.{at}/24 dev eth0".split(), namespace=inside)
            tool(["ip", "link", "set", "eth0", "up"], namespace=inside)
            shape = f"tc qdisc add dev eth0 root tbf rate {MBIT[host]}mbit burst 64k latency 1s"
            tool(shape.split(), namespace=inside)
        yield tmp_path


def test_the_one_that_sends_slowly_is_found(hosts: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    make_site(hosts / "site", inventory=INVENTORY + "profiles: [{name: p, channel: s}]\nchannels: [{name: s}]\n")
    monkeypatch.delenv("NETBOOT_CONFIG", raising=False)
    monkeypatch.chdir(hosts / "site")
    via = f"nsenter --net={hosts}/{{machine}}"
    done = run("fabric", "check", "--all", "--over", "tcp", "--seconds", "3", "--via", via, "--output", "json")
    told = json.loads(done.out)
    assert told["measured"] == told["planned"] == 12, told["pairs"]
    assert [(one["host"], one["way"]) for one in told["slow"]["hosts"]] == [("c", "sends")]
    assert told["slow"]["pairs"] == []
    assert done.status == 6
    assert 0.002 < told["hosts"]["c"]["sends"] < 0.005
    assert 0.01 < told["median_gbps"] < 0.025
