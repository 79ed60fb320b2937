"""CSV whose first line names its columns, strictly: every fault of a list at once, each with its line."""

import csv
import difflib
import io
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from images.values.strict import Fault, FaultsError

MOST_ROWS = 100_000
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
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
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
        raise FaultsError([Fault(file, begun, "", f"not CSV: {error}")]) from None


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
            faults.append(Fault(file, 1, "", f"unknown column {name[:60]!r}; {hint}"))
        if names.count(name) > 1:
            faults.append(Fault(file, 1, "", f"column {name[:60]!r} is here twice"))
    if not faults and not columns.enough(frozenset(names)):
        faults.append(Fault(file, 1, "", needed))
    if faults:
        raise FaultsError(faults)
