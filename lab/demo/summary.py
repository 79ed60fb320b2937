"""The demo's last page: each boot's trace as a picture, what was booted, where to look further. Pure but for
printing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from netboot.clock import moment_ms

WORDS = {
    "ScriptServed": "firmware, DHCP, iPXE; it asked for its script",
    "KernelFetched": "iPXE took the kernel",
    "InitrdFetched": "iPXE took the initrd",
    "InitrdStarted": "the kernel started, our initrd runs",
    "ImageFetched": "root image in RAM",
    "ImageVerified": "every chunk is what was signed",
    "Switched": "systemd runs from the image",
    "Booted": "multi-user.target",
    "Joining": "the agent begins",
    "Attested": "its TPM proved which machine it is",
    "TokenIssued": "one credential, for its key only",
    "CSRApproved": "the approver knows it",
    "NodeRegistered": "the kubelet made its Node",
    "Ready": "the cluster may use it",
}
BAR, SHORTEST_BAR, BESIDE_BARS = 36, 6, 96
"""Columns."""
COLOURS = {"served": "blue", "reported": "green", "observed": "magenta"}


@dataclass(frozen=True, slots=True)
class Step:
    """A phase: when it was reached, seconds since power-on, and what was said of it."""

    phase: str
    source: str
    at: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the page tells beside the trace. `image` is `netboot image show --output json`."""

    image: dict[str, Any]
    machine: str
    memory: int
    firmware: str
    network: str
    accelerator: str
    console: str
    total: float
    built: str
    more: Sequence[tuple[str, str]] = ()
    """Rows about the cluster that it joined."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A boot on the page: what stands above it, its trace, label and text of each row about it."""

    title: str
    reached: Sequence[Step]
    rows: Sequence[tuple[str, str]]


def steps(events: Sequence[dict[str, Any]], began: float) -> list[Step]:
    """Events in the order of their time; `began`: when their boot did, seconds since 1970."""
    reached = [
        Step(event["phase"], event["source"], moment_ms(event["at"]) / 1000 - began, event["detail"])
        for event in events
    ]
    return sorted(reached, key=lambda step: step.at)


def kernel_to_ready(events: Sequence[dict[str, Any]]) -> float | None:
    """Seconds from the start of the kernel to Ready, by the service's clock; None: it is not Ready.

    The first report of the initrd says how long its kernel has run.
    """
    started = (event for event in events if event["phase"] == "InitrdStarted")
    first = next((event for event in started if event.get("uptime_ms") is not None), None)
    ready = next((event for event in events if event["phase"] == "Ready"), None)
    if first is None or ready is None:
        return None
    return float(moment_ms(ready["at"]) - (moment_ms(first["at"]) - first["uptime_ms"])) / 1000


def trace_table(reached: Sequence[Step], width: int = BAR) -> Table:
    """One row for each phase: what it was, who says so, when, how long it took, and that as a bar."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, justify in (("phase", "left"), ("says", "left"), ("at", "right"), ("took", "right"), ("", "left")):
        table.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    table.add_column("what", overflow="fold")
    end, before = max((step.at for step in reached), default=0.0) or 1.0, 0.0
    for step in reached:
        colour = "red" if step.phase == "Failed" else COLOURS.get(step.source, "white")
        meaning = " · ".join(part for part in (WORDS.get(step.phase, ""), step.detail) if part)
        bar = Text(bar_of(before, step.at, end, width), style=colour)
        table.add_row(step.phase, step.source, f"{step.at:.1f} s", f"{step.at - before:.1f} s", bar, Text(meaning))
        before = step.at
    return table


def bar_of(start: float, stop: float, end: float, width: int) -> str:
    """A bar from `start` to `stop` on a line of `width` characters that stands for 0 to `end`; at least one mark."""
    left = min(int(start / end * width), width - 1)
    right = max(left + 1, min(round(stop / end * width), width))
    return " " * left + "━" * (right - left)


def page(
    reached: Sequence[Step],
    facts: Facts,
    commands: Sequence[tuple[str, str]],
    width: int,
    later: Sequence[Shown] = (),
) -> RenderableType:
    """The whole page, for a terminal of `width` columns: words need theirs, bars take what is left. `later`: boots
    after the first."""
    became = "is a Ready node" if reached[-1].phase == "Ready" else f"runs {facts.image['manifest']['name']}"
    title = f"{facts.machine} was a heap of firmware; {reached[-1].at:.0f} seconds later it {became}"
    first = Shown(title, reached, _rows(reached, facts))
    return Group(*(_panel(each, width) for each in (first, *later)), _further(commands))


def _rows(reached: Sequence[Step], facts: Facts) -> list[tuple[str, str]]:
    manifest = facts.image["manifest"]
    parts = manifest["artifacts"]
    sizes = ", ".join(f"{name} {parts[name]['size'] / 2**20:.1f}" for name in ("kernel", "initrd", "root"))
    verified = next((step.detail for step in reached if step.phase == "ImageVerified"), "nothing")
    signed = f"signed by key {facts.image['signer']}" if facts.image["verified"] else f"NOT: {facts.image['problem']}"
    return [
        ("machine", f"{facts.machine}: {facts.memory} MiB, no disk, {facts.firmware}, {facts.accelerator}"),
        ("network", facts.network),
        ("image", f"{manifest['name']} {facts.image['image'][:12]}, {manifest['distribution']} {manifest['suite']}"),
        ("kernel", manifest["kernel_version"]),
        ("size", f"{facts.image['size'] / 2**20:.1f} MiB ({sizes}); needs {manifest['ram_mib']} MiB of memory"),
        ("verified", f"{signed}; root image: {verified}, on the machine itself"),
        (
            "times",
            f"image {facts.built}; from power-on to the last phase {reached[-1].at:.1f} s; all {facts.total:.0f} s",
        ),
        *facts.more,
        ("console", facts.console),
    ]


def _panel(boot: Shown, width: int) -> RenderableType:
    """Its trace, and under it what there is to say."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in boot.rows:
        grid.add_row(name, Text(value))
    trace = trace_table(boot.reached, max(SHORTEST_BAR, min(BAR, width - BESIDE_BARS)))
    return Panel(Group(trace, Text(""), grid), title=boot.title, title_align="left", padding=(1, 2))


def _further(commands: Sequence[tuple[str, str]]) -> RenderableType:
    """Not in a frame, so that lines can be copied whole."""
    text = Text("Look further:\n", style="bold")
    for what, command in commands:
        text.append(f"  # {what}\n", style="dim")
        text.append(f"  {command}\n", style="not bold")
    return text


def show(console: Console, what: RenderableType) -> None:
    """Print it; where there is no terminal, wide enough that no line breaks."""
    console.print(what, soft_wrap=False, highlight=False)
