"""A tagged VLAN on a network of the lab, with a DHCP server of its own; its namespace is the router to the service.

For hosts whose kernel has no 8021q a process of ours (`python -m lab.vlan`) holds two taps and carries frames between
them: to one, a port of the bridge, with the VLAN's tag; to the other, on which the DHCP server listens, without.
"""

import contextlib
import fcntl
import os
import select
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.network import Network, common, serve
from lab.processes import child, run

READY_SECONDS = 180.0
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000  # linux/if_tun.h
_TAG = b"\x81\x00"  # IEEE 802.1Q


@dataclass(frozen=True, slots=True)
class Vlan:
    """A VLAN. `prefix`: the first three bytes of its addresses; the router and DHCP server is .1, machines .100 on."""

    prefix: str


@contextlib.contextmanager
def vlan(network: Network, interface: str, time_server: str) -> Iterator[Vlan]:
    """What is behind `interface`. Its DHCP says all that one can: MTU 1400, the service by a classless route and no
    router, name server, search list, NTP."""
    here = Vlan(f"198.19.{network.number}")  # the other half of the block of `lab.network`
    for command in (
        f"ip addr add {here.prefix}.1/24 dev {interface}",
        f"ip link set {interface} up",
        "sysctl -qw net.ipv4.ip_forward=1",
    ):
        network.run(*command.split())
    run(["ip", "route", "add", f"{here.prefix}.0/24", "via", network.inside])  # goes with the host's end of the veth
    lines = [
        f"dhcp-range={here.prefix}.100,{here.prefix}.199,255.255.255.0,1h",
        "dhcp-authoritative",
        "dhcp-option=option:router",
        f"dhcp-option=option:classless-static-route,{network.host}/32,{here.prefix}.1",
        "dhcp-option=option:mtu,1400",
        "dhcp-option=option:domain-search,rack-1.example,example",
        f"dhcp-option=option:dns-server,{here.prefix}.1",
        f"dhcp-option=option:ntp-server,{time_server}",
    ]
    with contextlib.ExitStack() as stack:
        serve(stack, network, "dnsmasq-vlan", common(network, interface) + lines)
        yield here


@contextlib.contextmanager
def trunk(network: Network, number: int) -> Iterator[str]:
    """Every port of the bridge is a trunk; yields the interface inside the namespace that is in VLAN `number`."""
    argv = [sys.executable, "-m", "lab.vlan", "plain0", "trunk0", str(number)]
    with child("vlan", argv, network.folder / "vlan.log", namespace=network.namespace) as carrier:
        carrier.output.wait_for("^ready$", READY_SECONDS)
        network.run("ip", "link", "set", "trunk0", "master", "br0", "up")
        yield "plain0"


def tagged(frame: bytes, number: int) -> bytes:
    """An Ethernet frame with the tag of a VLAN behind its addresses."""
    return frame[:12] + _TAG + struct.pack("!H", number) + frame[12:]


def untagged(frame: bytes, number: int) -> bytes | None:
    """The same without; None: it is of no VLAN, or of another. The tag's priority is passed over."""
    if frame[12:14] != _TAG or struct.unpack_from("!H", frame, 14)[0] & 0xFFF != number:
        return None
    return frame[:12] + frame[16:]


def _tap(name: str) -> int:
    handle = os.open(Path("/dev/net/tun"), os.O_RDWR)
    fcntl.ioctl(handle, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI))
    return handle


def main() -> None:
    """Carry frames between the plain tap and the tagged one, first and second argument, until killed."""
    plain, tags, number = _tap(sys.argv[1]), _tap(sys.argv[2]), int(sys.argv[3])
    print("ready", flush=True)
    while True:
        for handle in select.select([plain, tags], [], [])[0]:
            frame = os.read(handle, 65536)
            carried, other = (tagged(frame, number), tags) if handle == plain else (untagged(frame, number), plain)
            if carried is not None:
                with contextlib.suppress(OSError):  # the other is down: as a cable that is not plugged in
                    os.write(other, carried)


if __name__ == "__main__":
    main()
