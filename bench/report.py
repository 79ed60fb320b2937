"""What the bench prints: tables for people, one JSON document for programs; targets beside what was measured."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.abuse import Abused
from bench.flood import Flood, p99
from bench.join import Join
from bench.scripts import Scripts, rate
from bench.stats import Verdict, middle
from bench.transfers import SHAPES, Bytes

MODES = {"keep-alive": "keep-alive", "close": "a new connection per request"}


def _table(*columns: str, title: str = "") -> Table:
    return Table(*columns, title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")


def script_verdicts(scripts: Scripts) -> list[Verdict]:
    """The issue's targets on scripts, those of them that were measured."""
    if not scripts.theirs:
        return []
    wanted = [
        *(
            ("keep-alive", case, target)
            for case, target in (("500", 80.0), ("5000", 800.0), (scripts.one_of_many, 1.0))
        ),
        *(("close", case, target) for case, target in (("1", 1.0), ("500", 80.0))),
    ]
    return [
        Verdict(f"scripts/s, {MODES[mode]}, {case} ÷ matchbox({scripts.peer(case)})", scripts.ratio(mode, case), target)
        for mode, case, target in wanted
        if case in scripts.theirs.get(mode, {})
    ]


def byte_verdicts(transfers: Bytes) -> list[Verdict]:
    """The issue's targets on bytes."""
    verdicts = []
    for shape in SHAPES:
        if "nginx" not in transfers.rounds[shape]:
            continue
        speed, cpu = (transfers.ratio(shape, figure) for figure in ("gb_per_second", "cpu_per_gb"))
        verdicts.append(Verdict(f"bytes/s, {shape} ÷ nginx", speed, 0.95))
        verdicts.append(Verdict(f"CPU per GB, {shape} ÷ nginx", cpu, 2.0, at_least=False))
    return verdicts


def abuse_verdicts(abused: Abused) -> list[Verdict]:
    """The issue's targets under abuse."""
    return [
        Verdict("p99 with 1,000 stalled readers and 500 slow senders ÷ idle", abused.p99_ratio(), 5.0, at_least=False),
        Verdict("memory after the last such round ÷ after the first", abused.growth(), 1.1, at_least=False),
    ]


def flood_verdicts(flood: Flood) -> list[Verdict]:
    """The issue's targets on a flood."""
    return [
        Verdict("p99 of a known machine in a flood ÷ idle", flood.p99_ratio(), 5.0, at_least=False),
        Verdict("its scripts that were refused", flood.refused(), 0, at_least=False),
    ]


def as_json(
    scripts: Scripts | None, transfers: Bytes | None, abuse: Abused | None, join: Join | None, **more: Any
) -> dict[str, Any]:
    """Everything that was measured, each round of it."""
    parts = {"scripts": scripts, "bytes": transfers, "abuse": abuse, "join": join}
    return more | {name: asdict(value) for name, value in parts.items() if value is not None}


def print_scripts(console: Console, scripts: Scripts) -> None:
    """One table per mode (both sides of each case, in turn), and what a script costs as the inventory grows."""
    for mode, description in MODES.items():
        table = _table(
            "machines",
            "netboot /s",
            "p99 ms",
            "CPU µs",
            "matchbox /s",
            "p99 ms",
            "CPU µs",
            "ratio",
            title=f"iPXE scripts per second, {description}",
        )
        for case, ours in scripts.ours[mode].items():
            row = _load_cells(ours)
            if case in scripts.theirs.get(mode, {}):
                theirs = scripts.theirs[mode][case]
                note = "" if scripts.peer(case) == case else f" ({scripts.peer(case)})"
                row += [
                    f"{rate(theirs):,.0f}{note}",
                    *_load_cells(theirs)[1:],
                    f"{scripts.ratio(mode, case):,.2f}",
                ]
            table.add_row(case, *row)
        console.print(table, "")
    title = "netboot: the cost of a script as the inventory grows"
    table = _table("machines held", "scripts/s", "CPU µs to answer", "with all behind it", title=title)
    for case, ours in scripts.ours["keep-alive"].items():
        front, whole = (middle(getattr(load, cost) for load in ours) for cost in ("answer_us", "cpu_us"))
        table.add_row(case, f"{rate(ours):,.0f}", f"{front:.0f}", f"{whole:.0f}")
    console.print(table, "")


def _load_cells(rounds: list[Any]) -> list[str]:
    cpu = middle(load.cpu_us for load in rounds)
    return [f"{rate(rounds):,.0f}", f"{middle(load.p99_ms for load in rounds):.1f}", f"{cpu:,.0f}"]


def print_bytes(console: Console, transfers: Bytes) -> None:
    """One row per shape and server."""
    table = _table(
        "shape",
        "server",
        "GB/s",
        "CPU s/GB",
        "clients' CPU s/GB",
        title=f"image bytes, 8 clients, one file of {transfers.blob / 2**20:.0f} MiB",
    )
    for shape, servers in transfers.rounds.items():
        for server in servers:
            figures = ("gb_per_second", "cpu_per_gb", "clients_per_gb")
            table.add_row(shape, server, *(f"{transfers.median(shape, server, figure):.2f}" for figure in figures))
    console.print(table, "")


def print_abuse(console: Console, result: Abused) -> None:
    """Idle beside abused."""
    table = _table("", "scripts/s", "p99 ms", "memory MiB", title=f"scripts under abuse, {result.machines} machines")
    idle, abused = [each.idle for each in result.rounds], [each.abused for each in result.rounds]
    before, after = middle(each.before_mib for each in result.rounds), middle(each.after_mib for each in result.rounds)
    table.add_row("idle", *_load_cells(idle)[:2], f"{before:.0f}")
    table.add_row("with the crowd", *_load_cells(abused)[:2], f"{after:.0f}")
    console.print(table)
    last = result.rounds[-1].held
    console.print(
        f"attached at the end: {last.readers} readers, {last.senders} senders; {last.ended} had been ended and"
    )
    console.print(f"came back; the crowd costs {result.crowd_mib():.0f} MiB while it is there", "")


def print_flood(console: Console, flood: Flood) -> None:
    """One row per round."""
    title = f"a known machine's scripts, {flood.seconds:.0f} s of flood; capacity {flood.capacity:,.0f}/s"
    neighbour = flood.neighbour_ratio()
    beside = ("nginx idle", "in the flood") if neighbour is not None else ()
    columns = ("offered /s", "answered /s", "statuses", "journals MiB", "memory MiB")
    table = _table("p99 ms idle", "in the flood", *beside, *columns, title=title)
    for each in flood.rounds:
        figures = [p99(each.idle_ms), p99(each.flooded_ms)]
        if neighbour is not None:
            figures += [p99(each.neighbour_idle_ms), p99(each.neighbour_flooded_ms)]
        statuses = " ".join(f"{status}: {count:,}" for status, count in sorted(each.statuses.items()))
        rates = (f"{each.offered:,.0f}", f"{each.answered:,.0f}", statuses)
        table.add_row(*(f"{x:.1f}" for x in figures), *rates, f"{each.journals_mib:.0f}", f"{each.memory_mib:.0f}")
    console.print(table)
    if neighbour is not None:
        console.print(f"nginx, which nobody floods, on the same processors: p99 {neighbour:.2f} × its idle p99")
    console.print("")


def print_verdicts(console: Console, verdicts: list[Verdict]) -> None:
    """Each target beside its figure."""
    table = _table("target", "measured", "wanted", "")
    for verdict in verdicts:
        sign = "≥" if verdict.at_least else "≤"
        outcome = "[green]pass" if verdict.reached else "[bold red]MISS"
        table.add_row(verdict.what, f"{verdict.value:,.2f}", f"{sign} {verdict.target:g}", outcome)
    console.print(table)
