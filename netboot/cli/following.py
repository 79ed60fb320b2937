"""`-w`: a listing, and then each of its things again whenever it has changed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any

import click

from netboot.cli.client import Client
from netboot.cli.output import program_line, say

Items = Callable[[], Iterable[Mapping[str, Any]]]
Row = Callable[[Mapping[str, Any]], Sequence[object]]
_AT_MOST_EACH_SECONDS = 1.0
watch_option = click.option("-w", "--watch", "watched", is_flag=True, help="Go on, with what changes; Ctrl-C ends it.")


def follow(
    client: Client, output: str, items: Items, row: Row, columns: Sequence[str], empty: str, name: str = "name"
) -> None:
    """Print what `items` are now, then each again that changes, appears or goes, until somebody ends it; for programs
    one thing at a time. `name`: the field by which they are told apart.

    It looks whenever something happens to a boot, once a second at most, and with each heartbeat of the service, every
    five seconds.
    """
    before = {each[name]: each for each in items()}
    rows = [[str(cell or "") for cell in row(each)] for each in before.values()]
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    if output == "json":
        for each in before.values():
            program_line(output, each, each[name])
    else:
        say(_line(columns, widths))
        for cells in rows:
            say(_line(cells, widths))
        if not rows:
            say(empty, err=True)
    looked = monotonic()
    for _ in client.watch.watch():
        if monotonic() - looked < _AT_MOST_EACH_SECONDS:
            continue  # in a fleet that boots much happens; what is passed over here the next line shows
        looked, now = monotonic(), {each[name]: each for each in items()}
        for key, each in now.items():
            if before.get(key) != each:
                _tell(output, each, name, row, widths)
        for key in before.keys() - now.keys():
            _gone(output, before[key], key)
        before = now


def _tell(output: str, each: Mapping[str, Any], name: str, row: Row, widths: Sequence[int]) -> None:
    if output == "json":
        program_line(output, each, each[name])
    else:
        say(_line([str(cell or "") for cell in row(each)], widths))


def _gone(output: str, each: Mapping[str, Any], key: object) -> None:
    if output == "json":
        program_line(output, {"gone": dict(each)}, key)
    else:
        say(f"{key}  is gone")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
