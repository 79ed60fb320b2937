"""What the demo tells: its progress, its last page, and in case of a failure what failed and where to look."""

import argparse
import contextlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console

from lab.accelerator import Accelerator
from lab.demo.summary import Facts, Shown, Step, page, show, steps
from lab.errors import DeadlineError
from lab.machines import Hardware, Machine
from lab.network import Network
from lab.site import Site
from lab.work import ROOT

NAME, CHANNEL = "node-1", "stable"
"""The demo's machine, and its channel."""
LOG_LINES = 15
"""Of the service's log, where something failed."""


@dataclass(slots=True)
class Boot:
    """One boot of the machine: when it was switched on, or began anew, seconds since 1970; what happened in it so
    far."""

    began: float
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Its id; empty: it has not asked for its script."""
        return str(self.events[0]["boot"]) if self.events else ""

    def trace(self) -> list[Step]:
        """Its phases in the order of their time."""
        return steps(self.events, self.began)


@dataclass(slots=True)
class Demo:
    """What the demo is doing: for the one who reads its failure."""

    options: argparse.Namespace
    folder: Path
    console: Console
    begun: float
    phase: str = "starting"
    machine: Machine | None = None
    boots: list[Boot] = field(default_factory=list)
    """Of the machine, the one that is under way last."""
    built: str = ""
    """What is said of the image that was built last."""

    @contextlib.contextmanager
    def doing(self, phase: str) -> Iterator[None]:
        """One phase of the demo, told with its time."""
        self.phase, begun = phase, monotonic()
        self.say(f"[bold]==>[/] {phase}")
        yield
        self.say(f"    done in {monotonic() - begun:.1f} s")

    def say(self, text: str) -> None:
        """One line."""
        self.console.print(text, highlight=False, soft_wrap=True)


def network_words(net: Network | None) -> str:
    """What the summary says of the network; None: QEMU's own."""
    if net is None:
        return "QEMU's user network, its DHCP pointing at /boot.ipxe"
    return f"{net.host[:-2]}.0/24 in a namespace: dnsmasq (DHCP, TFTP) at {net.inside}, the service at {net.host}"


def show_page(
    demo: Demo,
    site: Site,
    hardware: Hardware,
    facts: Facts,
    later: Sequence[Shown] = (),
    cluster_commands: Sequence[tuple[str, str]] = (),
) -> None:
    """The summary. `facts`: of the first boot; `later`: the others; `cluster_commands`: what they show, and they, of
    the cluster that the machine joined."""
    commands = _commands(demo, site, hardware, facts.image["manifest"]["name"])
    if demo.options.keep:
        commands = [*cluster_commands, *commands]
    demo.console.print()
    whole = replace(facts, total=monotonic() - demo.begun)
    show(demo.console, page(demo.boots[0].trace(), whole, commands, demo.console.width, later))


def facts_of(
    demo: Demo,
    hardware: Hardware,
    image: dict[str, Any],
    net: Network | None,
    accelerator: Accelerator,
    cluster_rows: Sequence[tuple[str, str]] = (),
) -> Facts:
    """What the summary tells of the first boot beside its trace; `cluster_rows`: about the cluster that the machine
    joined."""
    firmware = "SeaBIOS and iPXE" if hardware.firmware == "bios" else "OVMF (UEFI) and iPXE"
    console = demo.folder / "machine" / f"{NAME}.console.log"
    return Facts(
        image=image,
        machine=NAME,
        memory=hardware.memory,
        firmware=firmware,
        network=network_words(net),
        accelerator="KVM" if accelerator == "kvm" else "emulated in software",
        console=short(console),
        total=monotonic() - demo.begun,
        built=demo.built,
        more=cluster_rows,
    )


def _commands(demo: Demo, site: Site, hardware: Hardware, image: str) -> list[tuple[str, str]]:
    netboot, config = short(ROOT / ".venv" / "bin" / "netboot"), f"--config {shlex.quote(short(site.config))}"
    local = [
        ("what the image consists of, and the memory it needs", f"{netboot} image show {config} {image}"),
        ("read every byte and compare it with what was signed", f"{netboot} image verify {config} {image}"),
    ]
    if not demo.options.keep:
        more = {" DISCOVER=1": demo.options.discover, " STATE=kubernetes": demo.options.state == "kubernetes"}
        same = f"make demo KEEP=1{''.join(word for word, given in more.items() if given)}"
        again = ("the same, left running until Ctrl-C, to ask the service", same)
        return [*local, ("the machine's console", f"less {short(demo.folder / 'machine' / NAME)}.console.log"), again]
    traces = [
        (f"the trace of boot {number}", f"{netboot} boot show {config} {boot.id}")
        for number, boot in enumerate(demo.boots, 1)
    ]
    return [
        *traces,
        ("why this machine gets this script", f"{netboot} explain {config} {NAME}"),
        ("machines, and what is known of them", f"{netboot} machine list {config}"),
        ("the script that it was served", f"curl '{site.url}/v1/boot?mac={hardware.mac}'"),
        ("the machine's console", f"tail -f {short(demo.folder / 'machine' / NAME)}.console.log"),
        *local,
    ]


def short(path: Path) -> str:
    """Relative where that is shorter and right: commands are for the folder in which `make demo` was called."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) and Path.cwd() == ROOT else str(path)


def explain_failure(demo: Demo, error: Exception) -> None:
    """What the machine and the service said last; then where it failed, and where the logs are."""
    demo.say("")
    if demo.machine is not None:
        events = demo.boots[-1].events if demo.boots else []
        last = events[-1]["phase"] if events else "nothing: it did not ask for its script"
        demo.say(f"the last that was heard of {NAME}: {last}; its console ends:")
        demo.console.print(demo.machine.console.tail(), highlight=False, markup=False, soft_wrap=True)
    for log in sorted((demo.folder / "logs").rglob("service-*.log")):
        demo.say(f"the service's log ends ({short(log)}):")
        lines = log.read_text(encoding="utf-8").splitlines()[-LOG_LINES:]
        demo.console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)
    demo.console.print(
        f"error: while {demo.phase}: {error}", style="red", highlight=False, markup=False, soft_wrap=True
    )
    if isinstance(error, DeadlineError):
        demo.say("on a busy machine everything takes longer; try again when it is idle")
    demo.say(f"logs of everything: {short(demo.folder)}")
