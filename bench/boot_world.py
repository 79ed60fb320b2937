"""Where boots are measured: one control plane, one site with its service, one origin, and a machine of each kind."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import requests

from bench import floor
from bench.boot_times import Seconds, of_floor, of_trace
from bench.serving import BenchError
from lab.accelerator import Accelerator, accelerator
from lab.demo.joining import attach
from lab.demo.steps import inventory, new_hardware
from lab.kube.binaries import find
from lab.kube.cluster import cluster
from lab.kube.kubectl import Kubectl
from lab.kube.recipe import node_recipe
from lab.machines import Hardware, chip_of, machine
from lab.network import Network, dnsmasq, network
from lab.processes import child
from lab.servers import nginx
from lab.service import Service, service
from lab.site import Site, make_site
from lab.time_server import time_server
from lab.tpm import ek_sha256
from lab.work import CACHE

RECIPE = "debian-12-node-demo"
NAME = "node-1"
READY_SECONDS = 420.0
"""From power-on, in software emulation on a busy machine."""
TRACE_SECONDS = 60.0
"""From Ready until every journal's records are in the trace."""
PHASES = {"InitrdStarted", "ImageFetched", "ImageVerified", "Switched", "Booted", "Joining", "CSRApproved", "Ready"}
"""Without these a trace is not whole."""
_COLUMNS = 'custom-columns=NAME:.metadata.name,READY:.status.conditions[?(@.type=="Ready")].status'


@dataclass(frozen=True)
class World:
    """Everything that a machine of either kind needs. `floor_url`: the script of the floor's."""

    folder: Path
    net: Network
    kubectl: Kubectl
    site: Site
    service: Service
    hardware: Hardware
    accelerator: Accelerator
    root_size: int
    floor_url: str
    time_servers: str


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Everything for the length of a block.

    Raises:
        NoKubernetesError, ClusterError, LabError: it cannot be had.
    """
    with ExitStack() as stack:
        binaries = find(CACHE)
        net = stack.enter_context(network(folder / "network"))
        site = make_site(folder / "site", net.host, join=True)
        image = _image(site, node_recipe(RECIPE, folder / "recipe", CACHE))
        artifacts = image["manifest"]["artifacts"]
        how = accelerator(site.store / "blobs" / artifacts["kernel"]["sha256"], CACHE / "lab")
        control = stack.enter_context(cluster(binaries, folder / "cluster", net.host))
        kubectl = Kubectl(binaries / "kubectl", control.admin, control.folder)
        attach(site, control)
        mine = new_hardware(NAME, "bios", image, node=True)
        site.declare(inventory(mine, net.machine(10), ek_sha256(chip_of(mine, folder))))
        running = stack.enter_context(service(site, folder))
        running.set_channel("stable", image["image"])
        clock = stack.enter_context(time_server(net))
        script = _script(running, site, mine)
        url = _floor(stack, folder, net, site, script, image["manifest"], floor.allow_join(control, kubectl))
        yield World(folder, net, kubectl, site, running, mine, how, artifacts["root"]["size"], url, clock)


def _image(site: Site, recipe: Path) -> Any:
    """The image as `image show` describes it."""
    made = json.loads(site.netboot("image", "build", str(recipe), "--cache", str(CACHE / "build"), "--output", "json"))
    return json.loads(site.netboot("image", "show", made["image"], "--output", "json"))


def _script(running: Service, site: Site, mine: Hardware) -> str:
    """Our machine's, once every boot server knows what it is to boot."""

    def boots() -> bool:
        answer = requests.get(f"{site.url}/v1/boot?mac={mine.mac}&uuid={mine.uuid}", timeout=60)
        found.append(answer.text)
        return answer.headers.get("Netboot-Outcome") == "boot"

    found: list[str] = []
    running.wait_until(f"{mine.name} is told to boot", boots, TRACE_SECONDS)
    return found[-1]


def _floor(
    stack: ExitStack, folder: Path, net: Network, site: Site, script: str, manifest: Any, join: floor.Join
) -> str:
    """Serve the floor's files; the URL of its script."""
    files = folder / "floor-files"
    files.mkdir()
    url = f"{stack.enter_context(nginx(net, files))}/v1"
    for name in ("kernel", "root"):
        (files / name).hardlink_to(site.store / "blobs" / manifest["artifacts"][name]["sha256"])
    theirs = site.store / "blobs" / manifest["artifacts"]["initrd"]["sha256"]
    floor.initrd(theirs, f"{url}/root", manifest["root_format"], join, folder / "floor-initrd", files / "initrd")
    (files / "floor.ipxe").write_text(floor.ipxe(url, floor.arguments(script)))
    return f"{url}/floor.ipxe"


def boot_ours(here: World) -> Seconds:
    """Switch our machine on until its node is Ready, then off; seconds by phase.

    Raises:
        BenchError: its trace is not whole. LabError: it did not get Ready, or ended.
    """
    mine, before = here.hardware, _boots(here)
    with ExitStack() as stack:
        hosts = {mine.mac: here.net.machine(10)}
        boot_url = f"{here.site.url}/boot.ipxe"
        stack.enter_context(dnsmasq(here.net, boot_url, hosts=hosts, time_servers=here.time_servers))
        running = stack.enter_context(machine(mine, here.net.tap("tap0"), here.folder, here.accelerator))
        events = here.service.events(mine.name, READY_SECONDS, running.qemu.check)
        boot = next(one["boot"] for one in events if one["phase"] == "Ready" and one["boot"] not in before)
        here.service.wait_until(f"the trace of {boot}", lambda: _phases(here, boot) >= PHASES, TRACE_SECONDS)
        trace = here.service.api(f"/v1/boots/{boot}")
    here.kubectl("delete", "node", mine.name)
    if trace["failures"]:
        raise BenchError(f"something failed in boot {boot}: {[one['detail'] for one in trace['failures']]}")
    return of_trace(trace["reached"])


def boot_floor(here: World) -> Seconds:
    """The same with the floor's machine.

    Raises:
        BenchError: its kernel has panicked. LabError: it did not get Ready, or ended.
    """
    mac = "52:54:00:f1:00:0e"
    bare = replace(here.hardware, name=floor.NAME, mac=mac, uuid="f1000e00-0000-4000-8000-000000000001")
    watch = ["get", "nodes", "--watch", "--no-headers", "-o", _COLUMNS]
    argv = [str(here.kubectl.program), "--kubeconfig", str(here.kubectl.account), *watch]
    logs = [here.folder / f"{name}.log" for name in ("floor.console", "nodes")]
    for log in logs:
        log.unlink(missing_ok=True)
    with ExitStack() as stack:
        hosts = {mac: here.net.machine(11)}
        stack.enter_context(dnsmasq(here.net, here.floor_url, hosts=hosts, time_servers=here.time_servers))
        nodes, nodes_began = stack.enter_context(child("kubectl", argv, logs[1])), monotonic()
        running = stack.enter_context(machine(bare, here.net.tap("tap1"), here.folder, here.accelerator))
        console_began = monotonic()
        said = running.wait_for_console(r"floor: Booted [\d.]+\n|Kernel panic", READY_SECONDS)
        if "panic" in said[0]:
            raise BenchError(f"the floor's kernel has panicked:\n{running.console.tail()}")
        nodes.output.wait_for(r"^floor +True", READY_SECONDS)
    here.kubectl("delete", "node", floor.NAME)
    return of_floor(logs[0].read_text(), console_began, logs[1].read_text(), nodes_began)


def _boots(here: World) -> set[str]:
    return {one["boot"] for one in here.service.api(f"/v1/boots?machine={here.hardware.name}&limit=1000")["boots"]}


def _phases(here: World, boot: str) -> set[str]:
    return {one["phase"] for one in here.service.api(f"/v1/boots/{boot}")["reached"]}
