"""A network with a DHCP server of the test's choice, configured by `netboot dhcp config`, TFTP, the service, a relay.

host (the service, .1) ══ br0 (DHCP and TFTP, .2) ══ c0 ─┐
                           ║                             client, where doctor asks
                           up0 (relay, .4) ══ down0 ══ c1 ┘
"""

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab.ipxe import ipxe_arm64
from lab.network import Network, network
from lab.output_log import OutputLog
from lab.processes import child, run
from lab.service import Service, service
from lab.site import COMMAND, Site, make_site
from lab.work import CACHE
from tests.boot.data_centre import hardware
from tests.tools.namespaces import namespace

READY_SECONDS = 180.0
BEHIND = "198.19.7"
"""The network behind the relay."""
SERVERS = {
    "dnsmasq": (["dnsmasq", "--test", "--conf-file={}"], "DHCP, IP range 198.18"),
    "kea": (["kea-dhcp4", "-t", "{}"], "DHCP4_STARTED"),
    "isc": (["dhcpd", "-t", "-cf", "{}"], "Server starting service"),
}
"""What judges a configuration, and what the server says when it answers."""
DPUS = {
    at: replace(hardware(at, "uefi", rom=False), name=f"dpu-{at}", memory=512, http_boot=at % 2 == 1)
    for at in range(70, 70 + 2 * len(SERVERS))
}
"""Machines of arm64, two for each server, by the last number of their address: even ones boot by PXE."""


@dataclass(frozen=True)
class World:
    """`client`: a process in the namespace where doctor asks; `tftp`: what the TFTP server says."""

    folder: Path
    net: Network
    site: Site
    service: Service
    client: int
    tftp: OutputLog

    def doctor(self, interface: str) -> list[dict[str, Any]]:
        """What `netboot doctor --network` says there, whatever it ends with."""
        argv = [*COMMAND, "doctor", "--network", "--config", str(self.site.config), "--interface", interface]
        words = "sh", "-c", '"$@" || [ $? = 1 ]', "sh", *argv, "-o", "json"
        said: list[dict[str, Any]] = json.loads(run(words, namespace=self.client))["diagnoses"]
        return said

    def plugged(self, inside: int, interface: str, number: int) -> None:
        """Give the namespace of this process an interface on the wire, and an address there."""
        _join(self.net, inside, interface, number)

    @contextlib.contextmanager
    def served(self, server: str) -> Iterator[None]:
        """A DHCP server, in the words of `netboot dhcp config`, once its own checker has passed them."""
        check, ready = SERVERS[server]
        printed = self.folder / f"{server}.printed"
        printed.write_text(self.site.netboot("dhcp", "config", "--for", server))
        run([word.format(printed) for word in check])
        argv = {"dnsmasq": self._dnsmasq, "kea": self._kea, "isc": self._isc}[server](printed)
        with child(server, argv, self.folder / f"{server}.log", namespace=self.net.namespace) as running:
            running.output.wait_for(ready, READY_SECONDS)
            yield

    def _dnsmasq(self, printed: Path) -> list[str]:
        leases = self.folder / "dnsmasq.leases"
        leases.unlink(missing_ok=True)
        return [*dnsmasq(printed), "--interface=br0", "--no-ping", f"--dhcp-leasefile={leases}"]

    def _kea(self, printed: Path) -> list[str]:
        """Leases in memory: its folder of the system may not be there."""
        document = json.loads(printed.read_text())
        document["Dhcp4"]["lease-database"]["persist"] = False
        ours = self.folder / "kea.json"
        ours.write_text(json.dumps(document))
        return ["env", "KEA_LOCKFILE_DIR=none", f"KEA_PIDFILE_DIR={self.folder}", "kea-dhcp4", "-c", str(ours)]

    def _isc(self, printed: Path) -> list[str]:
        leases = self.folder / "isc.leases"
        leases.write_text("")
        files = ["-cf", str(printed), "-lf", str(leases), "-pf", str(self.folder / "isc.pid")]
        return ["dhcpd", "-4", "-f", "-d", "--no-pid", *files, "br0"]


def dnsmasq(configuration: Path) -> list[str]:
    """It, with this configuration: no DNS, and all that it does in its log."""
    usual = ["--keep-in-foreground", "--log-facility=-", "--log-dhcp", "--user=root", "--group=root"]
    return ["dnsmasq", *usual, "--port=0", "--bind-interfaces", f"--conf-file={configuration}"]


@contextlib.contextmanager
def world(folder: Path) -> Iterator[World]:
    """Everything but the DHCP server."""
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network(folder / "network"))
        client = stack.enter_context(namespace(folder, "client"))
        relay = stack.enter_context(namespace(folder, "relay"))
        net.run("ip", "link", "set", "br0", "address", "02:00:00:00:00:02")  # else it changes with every port
        _join(net, client, "c0", 5)
        _join(net, relay, "up0", 4)
        _wire(client, relay)
        net.run("ip", "route", "add", f"{BEHIND}.0/24", "via", _at(net, 4))
        site = _site(folder, net)
        running = stack.enter_context(service(site, folder))
        tftp = stack.enter_context(_tftp(folder, site, net))
        conf = folder / "relay.conf"
        conf.write_text(f"dhcp-relay={BEHIND}.1,{net.inside}\n")
        log = folder / "relay.log"
        passing = stack.enter_context(child("relay", dnsmasq(conf), log, namespace=relay))
        passing.output.wait_for("DHCP relay from", READY_SECONDS)
        yield World(folder, net, site, running, client, tftp)


def _site(folder: Path, net: Network) -> Site:
    """With both networks, machines whose addresses are known, and iPXE of Debian's packages."""
    site = make_site(folder / "site", net.host)
    (ipxe := folder / "ipxe").mkdir()
    for name in ("undionly.kpxe", "snponly.efi", "ipxe.efi"):
        shutil.copyfile(Path("/usr/lib/ipxe") / name, ipxe / name)
    shutil.copyfile(ipxe_arm64(CACHE), ipxe / "ipxe-arm64.efi")
    folder.chmod(0o755)
    text = site.config.read_text().replace(f"  url: {site.url}\n", f"  url: {site.url}\n  ipxe: {ipxe}\n")
    first, behind = f"198.18.{net.number}", BEHIND
    site.config.write_text(
        f"{text}\ndhcp:\n  tftp: {net.inside}\n  subnets:\n"
        f"  - {{subnet: {first}.0/24, range: [{first}.100, {first}.199]}}\n"
        f"  - {{subnet: {behind}.0/24, range: [{behind}.100, {behind}.199], router: {behind}.1}}\n"
    )
    dpus = "".join(
        f"- {{name: {one.name}, architecture: arm64, match: {{macs: ['{one.mac}']}}, profile: default, "
        f"node: {{addresses: [{net.machine(at)}]}}}}\n"
        for at, one in DPUS.items()
    )
    site.declare(f"machines:\n{dpus}profiles:\n- {{name: default, channel: stable}}\nchannels:\n- {{name: stable}}\n")
    return site


@contextlib.contextmanager
def _tftp(folder: Path, site: Site, net: Network) -> Iterator[OutputLog]:
    """As docs/dhcp.md has it, and announcements of an IPv6 router, for which iPXE would wait 15 s; what it says."""
    root, conf = folder / "tftp", folder / "tftp.conf"
    site.netboot("dhcp", "tftp-folder", str(root))
    announced = f"interface=br0\nenable-ra\ndhcp-range={net.prefix},ra-only,64\nra-param=*,5,0\n"
    conf.write_text(f"port=0\nenable-tftp\ntftp-root={root}\n{announced}")
    with child("tftp", dnsmasq(conf), folder / "tftp.log", namespace=net.namespace) as running:
        running.output.wait_for("TFTP root is", READY_SECONDS)
        yield running.output


def _at(net: Network, number: int) -> str:
    return net.inside.rpartition(".")[0] + f".{number}"


def _join(net: Network, inside: int, interface: str, number: int) -> None:
    """An interface in the namespace of `inside`, on the network's bridge."""
    port = f"to-{interface}"
    peer = ("peer", "name", interface, "netns", f"/proc/{inside}/ns/net")
    net.run("ip", "link", "add", port, "type", "veth", *peer)
    net.run("ip", "link", "set", port, "master", "br0", "up")
    run(["ip", "addr", "add", f"{_at(net, number)}/24", "dev", interface], namespace=inside)
    run(["ip", "link", "set", interface, "up"], namespace=inside)


def _wire(client: int, relay: int) -> None:
    """The client's second interface, at the relay's other side."""
    run(
        ["ip", "link", "add", "down0", "type", "veth", "peer", "name", "c1", "netns", f"/proc/{client}/ns/net"],
        namespace=relay,
    )
    run(["ip", "addr", "add", f"{BEHIND}.1/24", "dev", "down0"], namespace=relay)
    for name, inside in (("down0", relay), ("c1", client)):
        run(["ip", "link", "set", name, "up"], namespace=inside)
