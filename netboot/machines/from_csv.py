"""Machines of a list in CSV: one a line, and its columns are what the inventory says of machines."""

import re
from collections.abc import Iterator
from typing import Any

from images.values import table
from images.values.strict import Fault, FaultsError
from netboot.machines.imported import Item, Listed, Path, Said

COLUMNS: dict[str, Path] = {
    "name": ("name",),
    "macs": ("match", "macs"),
    "uuid": ("match", "uuid"),
    "serial": ("match", "serial"),
    "ek_sha256": ("match", "ek_sha256"),
    "profile": ("profile",),
    "class": ("class",),
    "rack": ("rack",),
    "position": ("position",),
    "zone": ("topology", "zone"),
    "region": ("topology", "region"),
    "tiers": ("topology", "tiers"),
    "accelerator_domain": ("topology", "accelerator_domain"),
    "architecture": ("architecture",),
    "cluster": ("cluster",),
    "node": ("node", "name"),
    "labels": ("node", "labels"),
    "taints": ("node", "taints"),
    "addresses": ("node", "addresses"),
    "identity": ("identity",),
    "enabled": ("enabled",),
}
_SEVERAL = frozenset({"macs", "tiers", "labels", "taints", "addresses"})
_BETWEEN = re.compile(r"[\s,;]+")
"""Between several values of a cell; none of them has such a character in it."""
_COLUMNS = table.Columns(
    tuple(COLUMNS),
    "name, one of macs, uuid and serial, and what else is to be said of them",
    lambda names: "name" in names and bool(names & {"macs", "uuid", "serial"}),
)


def read_csv(data: bytes, file: str) -> Listed:
    """The machines of a CSV text, and every fault of it as a table; what they may be is not judged here."""
    items: list[Item] = []
    faults: list[str] = []
    try:
        for line, cells in table.rows(table.decoded(data, file), file, _COLUMNS):
            item = Item(f"{file}:{line}")
            faults += _take(item, cells)
            items.append(item)
    except FaultsError as error:
        faults += map(str, error.faults)
    if not items and not faults:
        faults.append(str(Fault(file, 1, "", "the list has no machine in it")))
    return Listed(items, faults)


def _take(item: Item, cells: table.Cells) -> Iterator[str]:
    item.declared["match"] = {}  # where none of its columns says anything, that is the fault
    for column, text in cells.items():
        if column == "":
            yield f"{item.at}: {text}: put what has a comma in it in double quotes"
        elif text:
            path, said = COLUMNS[column], Said(column, text)
            try:
                item.put(path, _value(column, text), said)
            except ValueError as error:
                item.said[path] = said
                yield item.fault(said, str(error))


def _value(column: str, text: str) -> Any:
    if column == "enabled":
        return _enabled(text)
    if column == "position":
        return _unit(text)
    if column not in _SEVERAL:
        return text
    several = [part for part in _BETWEEN.split(text) if part]
    return several if column != "labels" else _labels(several)


def _enabled(text: str) -> bool:
    if text.lower() not in ("true", "false"):  # spreadsheets write them in capitals
        raise ValueError("write true or false; nothing is true")
    return text.lower() == "true"


def _unit(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 3:
        raise ValueError("write the number of a unit, counted from the floor: 17")
    return int(text)


def _labels(several: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for part in several:
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is no label: write key=value, with blanks between several")
        if key in labels:
            raise ValueError(f"the label {key!r} is here twice")
        labels[key] = value
    return labels
