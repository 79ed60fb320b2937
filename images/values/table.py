"""CSV whose first line names its columns, strictly: every fault of a list at once, each with its line."""

import csv
import difflib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from images.values.strict import Fault, FaultsError

MOST_ROWS = 100_000
_QUOTED = re.compile(r'"(?:[^"]+|"")*+"(?=[,\r\n]|$)')
_BETWEEN = re.compile(r"[;\t|]")
_CALLED = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""What else programs put between cells."""
_BARE = re.compile(r"[^,\r\n]*")
Cells = dict[str, str]
"""Of one row, by column, without blanks around them. Under "": that the row has more of them than there are columns."""


class Columns(NamedTuple):
    """Of one kind of list. `names`: those that there may be; `needed`: in words, which the first line has to name;
    `enough`: whether these do."""

    names: Sequence[str]
    needed: str
    enough: Callable[[frozenset[str]], bool]


def decoded(data: bytes, file: str) -> str:
    """The text of a list.

    Raises:
        FaultsError: not UTF-8, with every line that is not.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise FaultsError(_undecoded(data, file)) from None


def _undecoded(data: bytes, file: str) -> Iterator[Fault]:
    for number, line in enumerate(data.split(b"\n"), 1):  # no character of UTF-8 has that byte in it but the line's end
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            words = f'is not UTF-8 text (byte 0x{line[error.start]:02x}): save the list as "CSV UTF-8"'
            yield Fault(file, number, "", words)


def rows(text: str, file: str, columns: Columns) -> Iterator[tuple[int, Cells]]:
    """Each row that is not empty, with the line where it begins.

    Raises:
        FaultsError: with every fault of the first line; or where a row is none, after those before it.
    """
    lines = _lines(text.removeprefix("\ufeff"))
    reader = csv.reader(lines, strict=True)
    begun = 1
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_names(names, file, columns)
        begun = reader.line_num + 1
        for number, cells in enumerate(reader):
            if number >= MOST_ROWS:
                raise FaultsError([Fault(file, begun, "", f"more than {MOST_ROWS} rows: divide the list")])
            if any(cell.strip() for cell in cells):
                said = {name: cell.strip() for name, cell in zip(names, cells, strict=False)}
                yield begun, said | _more(cells, names)
            begun = reader.line_num + 1
    except csv.Error as error:
        raise FaultsError([_no_row(error, "".join(lines[begun - 1 :]), file, begun)]) from None


def _lines(text: str) -> list[str]:
    """With their ends, as `csv` counts them."""
    return list(io.StringIO(text, newline=""))


def _no_row(error: csv.Error, rest: str, file: str, begun: int) -> Fault:
    """Why no row begins with `rest`, which is in line `begun`. What is behind it is not looked at: where a quote is not
    closed, nobody can tell which of it are rows."""
    cell = 0
    while (found := (_QUOTED if rest.startswith('"', cell) else _BARE).match(rest, cell)) is not None:
        if found.end() >= len(rest) or len(found[0]) > csv.field_size_limit():
            words = f"is no row of a CSV ({error}): correct it; the lines after it were not looked at"
            return Fault(file, begun, "", words)
        cell = found.end() + 1
    words = (
        'a quote (") is opened here, and none closes it before a comma or the end of a line: close it, or take it out; '
        "the lines after this one were not looked at"
    )
    return Fault(file, begun + len(_lines(f"{rest[:cell]}.")) - 1, "", words)


def _more(cells: list[str], names: list[str]) -> Cells:
    return {"": "more cells than columns"} if len(cells) > len(names) else {}


def _check_names(names: list[str], file: str, columns: Columns) -> None:
    needed = f"the first line names the columns: {columns.needed}"
    if not names:
        raise FaultsError([Fault(file, 1, "", f"is empty; {needed}")])
    faults = []
    for name in dict.fromkeys(names):
        if name not in columns.names:
            near = difflib.get_close_matches(name, columns.names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else needed
            if len(names) == 1 and (other := _BETWEEN.search(name)):
                hint = f"cells are divided by commas, not by {_CALLED[other[0]]}: save the list so"
            faults.append(Fault(file, 1, "", f"unknown column {name[:60]!r}; {hint}"))
        if names.count(name) > 1:
            faults.append(Fault(file, 1, "", f"column {name[:60]!r} is here twice"))
    if not faults and not columns.enough(frozenset(names)):
        faults.append(Fault(file, 1, "", needed))
    if faults:
        raise FaultsError(faults)
