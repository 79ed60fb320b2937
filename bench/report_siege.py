"""What the part `siege` prints, and its target."""

from rich.console import Console
from rich.table import Table

from bench.report_join import p99
from bench.siege import IDLE, Siege
from bench.stats import Verdict, middle

TARGET = 5.0


def siege_verdicts(measured: Siege) -> list[Verdict]:
    """The issue's target, by family."""
    return [
        Verdict(f"join's p99, {family}: worst siege ÷ idle", measured.worst(family), TARGET, at_least=False)
        for family in measured.rounds
    ]


def print_siege(console: Console, measured: Siege) -> None:
    """Each kind of siege beside the idle server."""
    for family, rounds in measured.rounds.items():
        title = f"join under siege by 1,000 connections, {family}: hello over a new connection"
        table = Table(
            "", "hellos", "median ms", "p99 ms", "÷ idle", title=title, title_justify="left", box=None, pad_edge=False
        )
        for kind in rounds[0]:
            times = [each[kind] for each in rounds]
            ratio = "" if kind == IDLE else f"{measured.ratio(family, kind):.2f}"
            medians, p99s = (middle(map(figure, times)) * 1000 for figure in (middle, p99))
            table.add_row(kind, str(sum(map(len, times))), f"{medians:.1f}", f"{p99s:.1f}", ratio)
        console.print(table, "")
