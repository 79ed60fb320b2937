"""`make demo`: build an image, start everything, boot a machine without a disk, show its trace. Exit 0: it is up."""

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from time import monotonic, time
from typing import Any

from rich.console import Console

from lab.accelerator import accelerator
from lab.errors import LabError
from lab.machines import Hardware, machine
from lab.network import Attachment, Network, UserNetwork, dnsmasq, network
from lab.processes import end_group, wrapped
from lab.service import Service, service
from lab.site import COMMAND, Site, command_environment, make_site
from lab.telling import NAME, Demo, explain_failure, network_words, show_page
from lab.work import CACHE, ROOT, work_folder

BOOT_SECONDS = 240.0
BOOT_SECONDS_PER_MIB = 0.5
"""More for a large image: software emulation verifies some ten MiB a second."""
CLEAN_SECONDS = 60.0
"""For an interrupted build to take its mounts and folders away."""
WIDTH = 132


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit status."""
    options = _options(arguments)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    if os.geteuid() != 0:
        return _as_root(console, sys.argv[1:] if arguments is None else arguments)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts what runs in the background with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    with work_folder("demo") as folder:
        demo = Demo(options, folder, console, monotonic())
        try:
            _run(demo)
        except KeyboardInterrupt:
            demo.say("interrupted; everything was stopped")
            return 130
        except (LabError, OSError, subprocess.SubprocessError) as error:
            explain_failure(demo, error)
            return 1
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.add_argument("--recipe", default="debian-12-minimal", help="name of a shipped recipe, or path of one")
    parser.add_argument("--firmware", choices=["bios", "uefi"], default="bios", help="SeaBIOS or OVMF")
    parser.add_argument("--user-network", action="store_true", help="QEMU's own network in place of a namespace")
    return parser.parse_args(arguments)


def _as_root(console: Console, arguments: Sequence[str]) -> int:
    """Packages are unpacked with their owners, and a network is made: both need root; the service itself does not."""
    again = [sys.executable, "-m", "lab.demo", *arguments]
    if shutil.which("sudo") is None:
        console.print("error: building an image needs root; run `make demo` as root", highlight=False)
        return 1
    console.print("building an image and making a network need root: going on with sudo", highlight=False)
    running = subprocess.Popen(["sudo", *again], cwd=ROOT)
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # it has heard the same Ctrl-C, and cleans up
            return running.wait()


def _run(demo: Demo) -> None:
    with contextlib.ExitStack() as stack:
        with demo.doing("making a provisioning network"):
            net = _network(demo, stack)
        host = net.host if net else "127.0.0.1"
        with demo.doing("making a site: netboot init"):
            site = make_site(demo.folder / "site", host, None if net else "10.0.2.2")
        with demo.doing(f"building an image: netboot image build {demo.options.recipe}"):
            image = _build(demo, site)
        hardware = Hardware(NAME, _mac(), _uuid(), "LAB-1", demo.options.firmware, memory=_memory(image))
        with demo.doing("starting the service: netboot serve"):
            site.declare(_inventory(hardware))
            running = stack.enter_context(service(site, demo.folder / "logs"))
            running.set_channel("stable", image["image"])
            account = running.account
            demo.say(f"    machines reach it at {site.url}, operators at {site.management}; it runs as {account}")
        with demo.doing("looking for a way to run machines"):
            kernel = site.store / "blobs" / image["manifest"]["artifacts"]["kernel"]["sha256"]
            how = accelerator(kernel, CACHE / "lab")
            demo.say("    KVM works" if how == "kvm" else "    KVM does not work here: software emulation (TCG)")
        attachment = _attachment(stack, net, site)
        with demo.doing(f"switching on {NAME}: {hardware.memory} MiB of memory, no disk"):
            demo.powered_on = time()
            demo.machine = stack.enter_context(machine(hardware, attachment, demo.folder / "machine", how))
            _follow(demo, running, image)
        show_page(demo, site, hardware, image, network_words(net), how)
        if demo.options.keep:
            _keep(demo)


def _network(demo: Demo, stack: contextlib.ExitStack) -> Network | None:
    """A real one, or None where this host does not let us."""
    if not demo.options.user_network:
        try:
            return stack.enter_context(network(demo.folder / "network"))
        except LabError as error:
            demo.say(f"    cannot make a network namespace here ({error}): QEMU's own network instead")
    return None


def _attachment(stack: contextlib.ExitStack, net: Network | None, site: Site) -> Attachment:
    url = f"{site.url}/boot.ipxe"
    if net is None:
        return UserNetwork(url)
    stack.enter_context(dnsmasq(net, url))
    return net.tap("tap0")


def _build(demo: Demo, site: Site) -> dict[str, Any]:
    """The image as `image show` describes it. The build speaks for itself on stderr."""
    argv = [*COMMAND, "image", "build", demo.options.recipe, "--cache", str(CACHE / "build"), "--output", "json"]
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


def _memory(image: dict[str, Any]) -> int:
    """What the image needs and room to work, in MiB."""
    return max(1024, int(image["manifest"]["ram_mib"]) + 512)


def _mac() -> str:
    return "52:54:00:" + ":".join(f"{byte:02x}" for byte in secrets.token_bytes(3))


def _uuid() -> str:
    text = secrets.token_hex(16)
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:]}"


def _inventory(hardware: Hardware) -> str:
    return f"""\
channels:
- name: stable
  description: what the demo's machine boots

profiles:
- name: default
  channel: stable

machines:
- name: {hardware.name}
  match:
    macs: ["{hardware.mac}"]
    uuid: {hardware.uuid}
  profile: default
"""


def _follow(demo: Demo, running: Service, image: dict[str, Any]) -> None:
    assert demo.machine is not None
    qemu = demo.machine.qemu
    seconds = BOOT_SECONDS + BOOT_SECONDS_PER_MIB * image["size"] / 2**20
    for event in running.events(NAME, seconds, qemu.check):
        demo.events.append(event)
        at = event["at_ms"] / 1000 - demo.powered_on
        colour = "red" if event["phase"] == "Failed" else "green"
        demo.console.print(f"    {at:6.1f} s  [{colour}]{event['phase']:<14}[/]", end="")
        demo.console.print(f" {event['source']:<9}{event['detail']}", highlight=False, markup=False, soft_wrap=True)
        if event["phase"] == "Booted":
            return


def _keep(demo: Demo) -> None:
    demo.say("[bold]everything is running; Ctrl-C stops it[/]")
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
    demo.say("stopping")


if __name__ == "__main__":
    sys.exit(main())
