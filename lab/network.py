"""A provisioning network: a namespace with a bridge, taps for machines, a veth to the host, and a real dnsmasq.

The namespace has no name: it lives as long as its processes, and they end with us (`lab.processes`), so that even after
`kill -9` nothing is left: the kernel takes the bridge, the taps and the host's end of the veth with the namespace.

    host (the service, .1) ══ veth ══ bridge (dnsmasq, second origins, .2) ══ taps ══ machines (.100 – .199)
"""

import contextlib
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from lab.errors import UnusableError
from lab.processes import child, run

BLOCK = "198.18"
"""Set aside for tests of network devices (RFC 2544), so that no real network of the host should meet ours."""
READY_SECONDS = 180.0
TFTP_FILES = {"undionly.kpxe": "/usr/lib/ipxe/undionly.kpxe", "snponly.efi": "/usr/lib/ipxe/snponly.efi"}
"""From the package `ipxe`: what firmware without iPXE in its NIC is given (options 93 says which)."""


@dataclass(frozen=True, slots=True)
class Tap:
    """Where a machine is plugged in: an interface inside the namespace of process `namespace`, and its other cards'."""

    namespace: int
    interface: str
    others: tuple[str, ...] = ()
    offload: bool = True  # False: the machine makes checksums itself, for a switch that reads frames as they are


@dataclass(frozen=True, slots=True)
class UserNetwork:
    """QEMU's own network, without root: the host is 10.0.2.2, and its DHCP hands `bootfile` to iPXE."""

    bootfile: str


Attachment = Tap | UserNetwork


@dataclass(frozen=True, slots=True)
class Network:
    """A provisioning network. `namespace`: a process inside; `folder`: configuration and logs."""

    folder: Path
    number: int
    namespace: int

    @property
    def host(self) -> str:
        """The host's address: where the service listens."""
        return f"{BLOCK}.{self.number}.1"

    @property
    def inside(self) -> str:
        """The address of the bridge: dnsmasq and second origins."""
        return f"{BLOCK}.{self.number}.2"

    def machine(self, number: int) -> str:
        """An address of a machine that always gets the same (`dnsmasq`'s `hosts`); `number`: 10 to 99."""
        return f"{BLOCK}.{self.number}.{number}"

    @property
    def prefix(self) -> str:
        """Its IPv6 prefix, of 64 bits; "ne", "tb", "oo" in ASCII."""
        return f"fd6e:6574:626f:6f{self.number:02x}::"

    def tap(self, name: str, *others: str) -> Tap:
        """Ports of the bridge with these names, for a machine; a machine that is switched on again has its own."""
        for one in (name, *others):
            if f" {one}:" not in self.run("ip", "-oneline", "link", "show", "type", "tun"):
                self.run("ip", "tuntap", "add", "dev", one, "mode", "tap")
            self.run("ip", "link", "set", one, "master", "br0", "up")
        return Tap(self.namespace, name, others)

    def run(self, *argv: str) -> str:
        """Run a short command inside the namespace to its end; its output, or EndedError."""
        return run(argv, namespace=self.namespace)


@contextlib.contextmanager
def network(folder: Path) -> Iterator[Network]:
    """A namespace with a bridge, joined to the host by a veth; for the length of a block.

    Raises:
        UnusableError: we are not root, or all 256 networks of our block are taken.
    """
    if os.geteuid() != 0:
        raise UnusableError("a network namespace with taps needs root: run it with sudo, or use QEMU's user network")
    folder.mkdir(parents=True, exist_ok=True)
    holder = ["unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"]
    with _number() as number, child("namespace", holder, folder / "namespace.log", grace=0) as inside:
        inside.output.wait_for("^ready$", READY_SECONDS)
        net = Network(folder, number, inside.pid)
        outer = f"nblab{number}"
        run(["ip", "link", "add", outer, "type", "veth", "peer", "name", "uplink", "netns", str(inside.pid)])
        try:
            run(["ip", "addr", "add", f"{net.host}/24", "dev", outer])
            _no_ipv6(outer)
            run(["ip", "link", "set", outer, "up"])
            for command in (
                "ip link set lo up",
                "ip link add br0 type bridge forward_delay 0",
                "ip link set uplink master br0 up",
                f"ip addr add {net.inside}/24 dev br0",
                f"ip -6 addr add {net.prefix}2/64 dev br0 nodad",
                "ip link set br0 up",
            ):
                net.run(*command.split())
            yield net
        finally:
            with contextlib.suppress(Exception):
                run(["ip", "link", "delete", outer])  # now, and not when the kernel comes to clear the namespace away


@contextlib.contextmanager
def _number() -> Iterator[int]:
    """A network of our block that is ours alone: an abstract socket is the claim, and dies with its process."""
    taken = [IPv4Network(f"{address['local']}/{address['prefixlen']}", strict=False) for address in _addresses()]
    for number in range(256):
        candidate = IPv4Network(f"{BLOCK}.{number}.0/24")
        if any(candidate.overlaps(other) for other in taken):
            continue
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as claim:
            try:
                claim.bind(f"\0netboot-lab-network-{number}")
            except OSError:
                continue
            yield number
            return
    raise UnusableError(f"all 256 networks of {BLOCK}.0.0/16 are in use on this host")


def _no_ipv6(interface: str) -> None:
    """The host is not to configure itself by what the lab announces; if /proc/sys is read-only it takes an address."""
    with contextlib.suppress(OSError):
        Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")


def _addresses() -> list[dict[str, str]]:
    links = json.loads(run(["ip", "-json", "-4", "addr"]))
    return [address for link in links for address in link.get("addr_info", []) if "local" in address]


Mode = Literal["authoritative", "proxy"]
NO_HOSTS: Mapping[str, str] = MappingProxyType({})


@contextlib.contextmanager
def dnsmasq(
    network: Network,
    boot_url: str,
    mode: Mode = "authoritative",
    hosts: Mapping[str, str] = NO_HOSTS,
    time_servers: str = "",
) -> Iterator[None]:
    """A real dnsmasq: addresses, iPXE over TFTP for firmware without it, and `boot_url` for iPXE.

    `hosts`: MAC → address, for machines that always get the same. `time_servers`: addresses, option 42. `proxy`:
    another server (a second dnsmasq that knows nothing of booting) gives the addresses; this one only adds what to
    boot, as beside an operator's own DHCP.
    """
    files = network.folder / "tftp"
    files.mkdir(exist_ok=True)
    for name, source in TFTP_FILES.items():
        shutil.copyfile(source, files / name)
    with contextlib.ExitStack() as stack:
        if mode == "proxy":
            stack.enter_context(_second_dhcp(network))
        fixed = [f"dhcp-host={mac},{address}" for mac, address in hosts.items()]
        fixed += [f"dhcp-option=option:ntp-server,{time_servers}"] if time_servers else []
        serve(stack, network, "dnsmasq", common(network, "br0") + _booting(network, boot_url, mode, files) + fixed)
        yield


def common(network: Network, interface: str) -> list[str]:
    """What every dnsmasq of the lab says: no DNS, this interface, all in its log."""
    return [
        "port=0",
        f"interface={interface}",
        "bind-interfaces",
        "log-dhcp",
        "no-ping",
        "user=root",
        "group=root",
        f"dhcp-leasefile={network.folder}/{interface}.leases",
    ]


def _range(network: Network) -> list[str]:
    """Addresses. Router advertisements too (of no router), or iPXE, which asks for both at once, waits 15 s for one."""
    prefix = f"{BLOCK}.{network.number}"
    advertised = ["enable-ra", f"dhcp-range={network.prefix},ra-only,64", "ra-param=*,5,0"]
    return [f"dhcp-range={prefix}.100,{prefix}.199,255.255.255.0,1h", "dhcp-authoritative", *advertised]


def _booting(network: Network, boot_url: str, mode: Mode, files: Path) -> list[str]:
    """Option 93 is the architecture (RFC 4578): 0 BIOS, 7 and 9 UEFI on x86-64. iPXE: option 175, user class."""
    tags = ["dhcp-match=set:ipxe,175", "dhcp-userclass=set:ipxe,iPXE"]
    tags += ["dhcp-match=set:bios,option:client-arch,0"]
    tags += [f"dhcp-match=set:uefi,option:client-arch,{number}" for number in (7, 9)]
    tftp = ["enable-tftp", f"tftp-root={files}"]
    if mode == "proxy":
        services = [("x86PC", "undionly.kpxe"), ("X86-64_EFI", "snponly.efi"), ("BC_EFI", "snponly.efi")]
        menu = [f"pxe-service=tag:!ipxe,{kind},netboot,{name}" for kind, name in services]
        menu += [f"pxe-service=tag:ipxe,{kind},netboot,{boot_url}" for kind, _ in services]
        return [*tags, *tftp, f"dhcp-range={BLOCK}.{network.number}.0,proxy,255.255.255.0", *menu]
    boots = [f"dhcp-boot=tag:ipxe,{boot_url}"]
    boots += ["dhcp-boot=tag:!ipxe,tag:bios,undionly.kpxe", "dhcp-boot=tag:!ipxe,tag:uefi,snponly.efi"]
    return [*tags, *tftp, *_range(network), *boots]


@contextlib.contextmanager
def _second_dhcp(network: Network) -> Iterator[None]:
    """The operator's own DHCP server: a namespace of its own on the same bridge (two cannot share port 67)."""
    holder = ["unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"]
    with child("second namespace", holder, network.folder / "namespace2.log", grace=0) as other:
        other.output.wait_for("^ready$", READY_SECONDS)
        network.run(
            "ip", "link", "add", "dhcp0", "type", "veth", "peer", "name", "up0", "netns", f"/proc/{other.pid}/ns/net"
        )
        network.run("ip", "link", "set", "dhcp0", "master", "br0", "up")
        run(["ip", "addr", "add", f"{BLOCK}.{network.number}.3/24", "dev", "up0"], namespace=other.pid)
        run(["ip", "-6", "addr", "add", f"{network.prefix}3/64", "dev", "up0", "nodad"], namespace=other.pid)
        run(["ip", "link", "set", "up0", "up"], namespace=other.pid)
        with contextlib.ExitStack() as stack:
            serve(stack, network, "dhcp", common(network, "up0") + _range(network), namespace=other.pid)
            yield


def serve(
    stack: contextlib.ExitStack, network: Network, name: str, lines: list[str], namespace: int | None = None
) -> None:
    """Run it with these lines, as long as `stack` lasts; its log is `<name>.log`. It answers when this returns."""
    path = network.folder / f"{name}.conf"
    path.write_text("\n".join(lines) + "\n")
    argv = ["dnsmasq", "--keep-in-foreground", f"--conf-file={path}", "--log-facility=-"]
    inside = network.namespace if namespace is None else namespace
    running = stack.enter_context(child(name, argv, network.folder / f"{name}.log", namespace=inside))
    running.output.wait_for("DHCP, (IP range|proxy)|DHCPv6 stateless", READY_SECONDS)
