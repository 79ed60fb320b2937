"""A data centre with a cluster that its one machine joins, by a TPM that the inventory names."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lab.demo.joining import attach
from lab.demo.steps import NODE_CPUS, NODE_MEMORY, inventory
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from lab.kube.kubectl import Kubectl
from lab.machines import Hardware, Machine, chip_of, machine
from lab.network import Tap, dnsmasq, network
from lab.service import Service, service
from lab.site import Site, make_site
from lab.time_server import time_server
from lab.tpm import ek_sha256
from lab.work import CACHE
from tests.boot.data_centre import QUICK_RETRIES, BuiltImage, copy_images, hardware

READY_SECONDS = 540.0
"""From power-on to Ready, in software emulation, on a machine that is busy with other things."""

MISSED = "  health: {gpus: 8, nvlinks: 18}\n"
"""Of the machine: what none of a laboratory has."""
LOADED = "  kernel_arguments: [netboot.active=memory]\n"
"""Of its profile: a test under load, for which the kubelet waits."""


@dataclass(frozen=True, slots=True)
class NodeDataCentre:
    """Everything that `machine` needs to become a node."""

    folder: Path
    built: BuiltImage
    site: Site
    service: Service
    cluster: Cluster
    kubectl: Kubectl
    hardware: Hardware
    tap: Tap
    time_server: str
    """Its address, which DHCP names."""
    declared: str
    """The inventory."""

    @contextlib.contextmanager
    def switched_on(self, clock: str = "") -> Iterator[Machine]:
        """The machine, with the same TPM each time; `clock`: what its board's says then."""
        hardware = replace(self.hardware, clock=clock)
        with machine(hardware, self.tap, self.folder, self.built.accelerator) as running:
            yield running

    def declare_anew(self, said: str) -> None:
        """The profile of its machine says this from now on, and of a test under load nothing more."""
        self.site.declare(self.declared.replace(LOADED, said))

    def ready(self, not_boot: str = "") -> str:
        """Wait until the machine's Node is Ready in another boot than `not_boot`; the boot's id."""
        phases = []
        for event in self.service.events(self.hardware.name, READY_SECONDS):
            phases.append(f"{event['boot']} {event['phase']} {event['detail']}")
            if event["phase"] == "Ready" and event["boot"] != not_boot:
                return str(event["boot"])
        raise AssertionError("\n".join(phases))


@contextlib.contextmanager
def node_data_centre(folder: Path, built: BuiltImage) -> Iterator[NodeDataCentre]:
    """Cluster, site, service, DHCP and the time server that it names; the machine is declared with its TPM, and off."""
    mine = replace(hardware(1), memory=NODE_MEMORY, cpus=NODE_CPUS, tpm=True)
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network(folder / "network"))
        binaries = find(CACHE)
        control = stack.enter_context(cluster(binaries, folder / "cluster", net.host))
        site = make_site(folder / "site", net.host, keys=built.site.folder / "keys", join=True)
        attach(site, control)
        with site.config.open("a") as config:
            config.write(QUICK_RETRIES)
        copy_images(built.site.store, site.store)
        address = net.machine(10)
        declared = inventory(mine, address, ek_sha256(chip_of(mine, folder))) + MISSED
        declared = declared.replace("  pcrs: none\n", f"  pcrs: none\n{LOADED}")
        site.declare(declared)
        running = stack.enter_context(service(site, folder))
        running.set_channel("stable", built.digest)
        clock = stack.enter_context(time_server(net))
        stack.enter_context(dnsmasq(net, f"{site.url}/boot.ipxe", hosts={mine.mac: address}, time_servers=clock))
        kubectl = Kubectl(binaries / "kubectl", control.admin, control.folder)
        yield NodeDataCentre(folder, built, site, running, control, kubectl, mine, net.tap("tap0"), clock, declared)
