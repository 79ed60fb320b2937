"""How every command shows what it found: a table for people; JSON, YAML, names or a part of it for programs."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

import click
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from netboot.cli.forms import Output, OutputType

F = TypeVar("F", bound=Callable[..., Any])

output_option: Callable[[F], F] = click.option(
    "--output",
    "-o",
    type=OutputType(),
    default="table",
    show_default=True,
    help="table, wide, json, yaml, name, or jsonpath=EXPRESSION.",
)
_BETWEEN = 2
"""Spaces between columns."""


def show(
    output: str,
    value: Mapping[str, Any] | None,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    empty: str = "nothing here yet",
    *,
    names: Iterable[object] | None = None,
    wide: int = 0,
) -> None:
    """Print `value` for programs (None: what is shown is for people alone), or `rows` under `columns`, the last `wide`
    of them where all are asked for. `names`: what the things in it are called."""
    if output == "json":
        program(output, value, names=names)
        return
    shown = len(columns) - (0 if is_wide(output) else wide)
    table = Table(*columns[:shown], box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(
            *(Text("" if cell is None else printable(str(cell))) for cell in row[:shown])
        )  # Text: brackets are no markup
    if table.row_count:
        _print(table)
    else:
        say(empty)


def program(
    output: str, value: Mapping[str, Any] | None, *, names: Iterable[object] | None = None, sort_keys: bool = True
) -> None:
    """Print `value` in the form that a program asked for: an object, in which a list has a name, as in the API."""
    text = _form(output).text(value, names, sort_keys=sort_keys)
    if text or _form(output).form == "json":
        click.echo(text)


def program_line(output: str, value: Any, name: object | None = None) -> None:
    """The same of one of many, as they come."""
    click.echo(_form(output).line(value, name))


def is_wide(output: str) -> bool:
    """Whether whoever asked wants all columns, and digests whole."""
    return _form(output).wide


def image_digest(output: str, text: str | None) -> str:
    """An image's digest for a table: its first twelve digits, which every command takes, or all where there is room."""
    return (text or "") if is_wide(output) else (text or "")[:12]


def _form(output: str) -> Output:
    return output if isinstance(output, Output) else Output(output)


def _print(table: Table) -> None:
    """As wide as its longest words need, at least: lines of a terminal that are too short are continued below, and
    what one copies from is never cut. A pipe gets every value on one line."""
    if not sys.stdout.isatty():
        Console(width=10_000).print(table)
        return
    console = Console()
    cells = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    whole = [max(map(cell_len, texts)) for texts in cells]
    least = [max((cell_len(word) for text in texts for word in text.split()), default=0) for texts in cells]
    between = _BETWEEN * (len(cells) - 1)
    widths = _fitting(whole, least, console.width - between)
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    console.width = max(console.width, sum(widths) + between)
    console.print(table)


def _fitting(whole: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths of columns: those that have most to give away give it, until all fit or none has anything left."""
    widths = list(whole)
    while sum(widths) > room:
        at = max(range(len(widths)), key=lambda column: widths[column] - least[column])
        if widths[at] == least[at]:
            break
        widths[at] -= 1
    return widths


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
