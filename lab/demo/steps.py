"""What the demo is made of: its network, image and machine, and following a boot."""

import contextlib
import json
import secrets
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from lab.demo.joining import Joining
from lab.demo.progress import CHANNEL, NAME, Demo
from lab.errors import LabError
from lab.machines import Firmware, Hardware
from lab.network import Attachment, Network, UserNetwork, dnsmasq, network
from lab.processes import end_group, wrapped
from lab.service import Service
from lab.site import COMMAND, Site, command_environment
from lab.time_server import time_server
from lab.work import CACHE, ROOT
from netboot.clock import moment_ms

BOOT_SECONDS = 360.0
JOIN_SECONDS = 300.0
"""From multi-user.target to Ready, in software emulation on a busy machine."""
BOOT_SECONDS_PER_MIB = 0.5
"""More for a large image: software emulation verifies some ten MiB a second."""
CLEAN_SECONDS = 180.0
"""For an interrupted build to take its mounts and folders away."""
NODE_MEMORY, NODE_CPUS = 2048, 2
"""MiB: the image, what containerd unpacks, and Pods."""


def new_network(demo: Demo, stack: contextlib.ExitStack) -> Network | None:
    """A real one, or None where this host does not let us."""
    if not demo.options.user_network:
        try:
            return stack.enter_context(network(demo.folder / "network"))
        except LabError as error:
            demo.say(f"    cannot make a network namespace here ({error}): QEMU's own network instead")
    return None


def attachment_of(
    stack: contextlib.ExitStack, net: Network | None, url: str, hosts: Mapping[str, str]
) -> tuple[Attachment, Callable[[str], None]]:
    """Where the machine is plugged in, and what makes DHCP name another script; `url`: of the first one, `hosts`:
    MAC → address, for the DHCP server."""
    if net is None:
        return UserNetwork(url), lambda _: None
    clock, server = stack.enter_context(time_server(net)), stack.enter_context(contextlib.ExitStack())

    def name(script: str) -> None:
        server.close()
        server.enter_context(dnsmasq(net, script, hosts=hosts, time_servers=clock))

    name(url)
    return net.tap("tap0"), name


def build_image(demo: Demo, site: Site, recipe: str) -> dict[str, Any]:
    """The image as `image show` describes it. The build speaks for itself on stderr; `demo.built` sums it up."""
    argv = [*COMMAND, "image", "build", recipe, "--cache", str(CACHE / "build"), "--output", "json"]
    with (demo.folder / "build.json").open("w+") as output:
        # In a session of its own, so that Ctrl-C reaches it once, from here, and it is waited for while it cleans up.
        process = subprocess.Popen(
            wrapped(argv),
            cwd=ROOT,
            env=command_environment(site.config),
            stdin=subprocess.DEVNULL,
            stdout=output,
            start_new_session=True,
        )
        try:
            status = process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait(CLEAN_SECONDS)
            raise
        finally:
            end_group(process)
        if status != 0:
            raise LabError("netboot image build failed; what it said is above")
        output.seek(0)
        result = json.load(output)
    cached = sum(1 for step in result["steps"] if step["cached"])
    demo.built = f"built in {result['seconds']:.1f} s ({cached} of {len(result['steps'])} steps from the cache)"
    shown: dict[str, Any] = json.loads(site.netboot("image", "show", result["image"], "--output", "json"))
    return shown


def new_hardware(name: str, firmware: Firmware, image: dict[str, Any], *, node: bool) -> Hardware:
    """A machine with what the image needs and room to work; a node has a TPM."""
    memory = max(NODE_MEMORY if node else 1024, int(image["manifest"]["ram_mib"]) + 512)
    mac = "52:54:00:" + ":".join(f"{byte:02x}" for byte in secrets.token_bytes(3))
    digits = secrets.token_hex(16)
    uuid = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
    return Hardware(name, mac, uuid, "LAB-1", firmware, memory, cpus=NODE_CPUS if node else 1, tpm=node)


def inventory(hardware: Hardware, address: str | None, ek: str | None = None) -> str:
    """What the operator declares; `address`: of a node, for its serving certificate; `ek`: its TPM, if it is known."""
    node = f"""\
  node:
    labels: {{lab.netboot.dev/rack: demo}}
    addresses: [{address}]
"""
    health = f"  health: {{cpus: {hardware.cpus}, memory_gib: {hardware.memory / 1024}}}\n"
    return f"""\
channels:
- name: {CHANNEL}
  description: what the demo's machine boots

profiles:
- name: default
  channel: {CHANNEL}
  pcrs: none
{health if address else ""}
machines:
- name: {hardware.name}
  match:
    macs: ["{hardware.mac}"]
    uuid: {hardware.uuid}
    ek_sha256: {ek or "null"}
  profile: default
{node if address else ""}"""


def follow(demo: Demo, running: Service, image: dict[str, Any], join: Joining | None) -> None:
    """Tell what happens to the machine in its boot, until it is up; of a node, until it is Ready."""
    assert demo.machine is not None
    boot, before = demo.boots[-1], {one.id for one in demo.boots[:-1]}
    last, seconds = "Booted", BOOT_SECONDS + BOOT_SECONDS_PER_MIB * image["size"] / 2**20
    if join is not None:
        last, seconds = "Ready", seconds + JOIN_SECONDS
    for event in running.events(NAME, seconds, demo.machine.qemu.check):
        if event["boot"] in before:
            continue
        boot.events.append(event)
        _tell(demo, event)
        if event["phase"] == last:
            return
        if join is not None and event["phase"] == "Failed":
            join.approve_if_pending(running)


def _tell(demo: Demo, event: dict[str, Any]) -> None:
    at = moment_ms(event["at"]) / 1000 - demo.boots[-1].began
    colour = "red" if event["phase"] == "Failed" else "green"
    demo.console.print(f"    {at:6.1f} s  [{colour}]{event['phase']:<14}[/]", end="")
    demo.console.print(f" {event['source']:<9}{event['detail']}", highlight=False, markup=False, soft_wrap=True)
