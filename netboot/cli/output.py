"""How every command shows what it found: a table for people, JSON for programs."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

F = TypeVar("F", bound=Callable[..., Any])

output_option: Callable[[F], F] = click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="For people, or for programs.",
)


def show(
    output: str, value: Any, columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "nothing here yet"
) -> None:
    """Print `value` as JSON, or `rows` under `columns`."""
    if output == "json":
        click.echo(json.dumps(value, indent=2, sort_keys=True))
        return
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(
            *(Text("" if cell is None else printable(str(cell))) for cell in row)
        )  # Text: brackets are no markup
    if table.row_count:
        Console(width=None if sys.stdout.isatty() else 10_000).print(table)  # a pipe gets every value whole
    else:
        say(empty)


def printable(text: str) -> str:
    """What others wrote, for a terminal, which obeys control characters: they are question marks."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def say(text: str, *, err: bool = False) -> None:
    """Print words of which somebody else's may be a part."""
    click.echo(printable(text), err=err)


@contextmanager
def progress(what: str, total: int, after: float = 2.0, *, in_bytes: bool = True) -> Iterator[Callable[[int], None]]:
    """A progress bar for `total` bytes, or things, on a terminal's stderr, once it has taken `after` seconds.

    Gives what is told each step. `count`: how it says how far it is, where it is not bytes.
    """
    done = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), done, TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task, begun, shown = bar.add_task(what, total=total), monotonic(), False

    def advance(step: int) -> None:
        nonlocal shown
        if not shown and sys.stderr.isatty() and monotonic() - begun >= after:
            shown = True
            bar.start()
        bar.update(task, advance=step)

    try:
        yield advance
    finally:
        if shown:
            bar.stop()
