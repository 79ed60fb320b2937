"""`make demo`: build an image, start everything, boot a machine without a disk, show its trace.

With the recipe of a node it goes on: a control plane, attestation by TPM, a Ready node, a Pod that runs on it; then a
rollout to a second image, for which the machine is drained and reboots itself, and the same again. With `--discover`
nobody declares the machine before it has introduced itself, and all ends with its Pod.
Exit status 0: all of it happened.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from time import monotonic, time
from typing import Any

from rich.console import Console

from images.recipe import inherit
from images.values.strict import FaultsError
from lab.accelerator import accelerator
from lab.demo import discovering
from lab.demo.joining import Joining, joining
from lab.demo.progress import CHANNEL, NAME, Boot, Demo, explain_failure, facts_of, show_page
from lab.demo.replicas import Replicas, replicas
from lab.demo.rolling import rolled
from lab.demo.steps import attachment_of, build_image, follow, inventory, new_hardware, new_network
from lab.demo.summary import Shown
from lab.errors import LabError, UnusableError
from lab.kube.binaries import NoKubernetesError
from lab.kube.cluster import ClusterError
from lab.machines import chip_of, machine
from lab.service import Service, service
from lab.site import Site, make_site
from lab.work import CACHE, ROOT, work_folder

WIDTH = 132
MINIMAL = "debian-12-minimal"


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
        except (LabError, ClusterError, NoKubernetesError, OSError, subprocess.SubprocessError) as error:
            explain_failure(demo, error)
            return 1
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.add_argument("--recipe", default="debian-12-node-demo", help="a shipped recipe, or path of one")
    parser.add_argument("--firmware", choices=["bios", "uefi"], default="bios", help="SeaBIOS or OVMF")
    parser.add_argument("--user-network", action="store_true", help="QEMU's own network in place of a namespace")
    parser.add_argument("--discover", action="store_true", help="declare nobody: the machine introduces itself first")
    parser.add_argument(
        "--state",
        choices=["embedded", "kubernetes"],
        default="embedded",
        help="kubernetes: three replicas, one is killed",
    )
    options = parser.parse_args(arguments)
    if options.state == "kubernetes" and (options.discover or options.user_network):
        parser.error("--state kubernetes goes without --discover and --user-network")
    return options


def _as_root(console: Console, arguments: Sequence[str]) -> int:
    """Packages are unpacked with their owners, and a network is made: both need root; the service itself does not."""
    again = [sys.executable, "-m", "lab.demo", *arguments]
    if shutil.which("sudo") is None:
        console.print("Error: building an image needs root; run `make demo` as root", highlight=False)
        return 1
    console.print("building an image and making a network need root: going on with sudo", highlight=False)
    running = subprocess.Popen(["sudo", *again], cwd=ROOT)
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # it has heard the same Ctrl-C, and cleans up
            return running.wait()


def _run(demo: Demo) -> None:
    with contextlib.ExitStack() as stack:
        with demo.doing("making a provisioning network"):
            net = new_network(demo, stack)
        host = net.host if net else "127.0.0.1"
        join = joining(demo, stack, net) if _joins(demo, networked=net is not None) else None
        with demo.doing("making a site: netboot init"):
            site = make_site(demo.folder / "site", host, None if net else "10.0.2.2", join=join is not None)
            if join is not None:
                join.prepare(site)
        with demo.doing(f"building an image: netboot image build {demo.options.recipe}"):
            image = build_image(demo, site, demo.options.recipe if join is None else join.recipe)
        address = net.machine(10) if net else None
        hardware = new_hardware(NAME, demo.options.firmware, image, node=join is not None)
        if demo.options.discover:
            discovering.prepare(site, hardware)
        else:
            site.declare(inventory(hardware, address if join else None))
        several = replicas(demo, stack, site, join) if join and demo.options.state == "kubernetes" else None
        running = _serve(demo, stack, site, image, several)
        with demo.doing("looking for a way to run machines"):
            kernel = site.store / "blobs" / image["manifest"]["artifacts"]["kernel"]["sha256"]
            how = accelerator(kernel, CACHE / "lab")
            demo.say("    KVM works" if how == "kvm" else "    KVM does not work here: software emulation (TCG)")
        hosts = {hardware.mac: address} if address else {}
        attachment, redirect = attachment_of(stack, net, f"{site.url}/boot.ipxe", hosts)
        if join is not None and not demo.options.discover:
            join.enrol(chip_of(hardware, demo.folder / "machine"))
        with demo.doing(f"switching on {NAME}: {hardware.memory} MiB of memory, no disk"):
            demo.boots.append(Boot(time()))
            demo.machine = stack.enter_context(machine(hardware, attachment, demo.folder / "machine", how))
            if join is not None and address and demo.options.discover:
                join.pinned(discovering.introduced(demo, site, running, hardware, address))
            follow(demo, running, image, join)
        rows = [*join.facts(), *join.run_a_pod(demo.boots[0].events)] if join else []
        if several is not None:
            rows += several.facts()
            running = several.lose_first(redirect)
        facts, later = facts_of(demo, hardware, image, net, how, rows), _rolled(demo, running, join, image, several)
        commands = join.commands(running.site, rolled=bool(later), objects=several is not None) if join else ()
        show_page(demo, running.site, hardware, facts, later, commands)
        if demo.options.keep:
            _keep(demo)


def _serve(
    demo: Demo, stack: contextlib.ExitStack, site: Site, image: dict[str, Any], several: Replicas | None
) -> Service:
    """The service runs, and its channel points to the image; of several replicas the first of them."""
    if several is not None:
        several.publish(image, site)
        several.start(stack)
        running = several.running[0]
        several.running[-1].set_channel(CHANNEL, image["image"])
    else:
        with demo.doing("starting the service: netboot serve"):
            running = stack.enter_context(service(site, demo.folder / "logs"))
            running.set_channel(CHANNEL, image["image"])
    demo.say(f"    machines reach it at {site.url}, operators at {site.management}")
    demo.say(f"    it runs as {running.account}")
    return running


def _rolled(
    demo: Demo, running: Service, join: Joining | None, image: dict[str, Any], several: Replicas | None
) -> list[Shown]:
    """The boot by a rollout, where machines join a cluster and one was declared; `running`: who is asked for it."""
    if join is None or demo.options.discover:
        return []
    if several is None:
        return [rolled(demo, running, join, image, lambda _: None)]
    later = [rolled(demo, running, join, image, lambda second: several.publish(second, running.site))]
    several.show()
    return later


def _needs_cluster(demo: Demo) -> str:
    """Why what is to be shown is shown with a cluster that machines join; "": it is not."""
    if demo.options.discover:
        return "only images that join a cluster have what a machine introduces itself by"
    return "replicas keep their state in the cluster that machines join" if demo.options.state == "kubernetes" else ""


def _joins(demo: Demo, *, networked: bool) -> bool:
    """Whether the recipe's machines join a cluster; without a network of its own the demo shows the boot alone.

    Raises:
        UnusableError: it is no recipe for the demo's machines.
    """
    try:
        recipe = inherit.load(inherit.find(demo.options.recipe))
    except (FaultsError, OSError) as error:
        if _needs_cluster(demo):
            raise UnusableError(str(error)) from None
        return False  # the build says what is wrong with it
    if recipe.architecture != "amd64":
        raise UnusableError(
            f"the demo's machines are amd64, and {recipe.name} is for {recipe.architecture}; "
            f"`netboot image build {demo.options.recipe}` builds it, tests/boot/test_arm64.py boots one of arm64"
        )
    joins = recipe.join
    if (why := _needs_cluster(demo)) and not (joins and networked):
        what = f"those of {recipe.name} join none" if networked else "they need a network of their own for that"
        raise UnusableError(f"{why}, and {what}")
    if joins and not networked:
        demo.say(f"    a node and its API server must reach each other, so this shows a boot only: {MINIMAL}")
        demo.options.recipe = MINIMAL
    return joins and networked


def _keep(demo: Demo) -> None:
    demo.say("[bold]everything is running; Ctrl-C stops it[/]")
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
    demo.say("stopping")


if __name__ == "__main__":
    sys.exit(main())
