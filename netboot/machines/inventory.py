"""The inventory folder: all its `*.yaml` together are what the operator declares; all faults of all files at once."""

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from images.values import strict
from images.values.strict import Document, Fault, FaultsError
from netboot.machines.identity import parse_mac, parse_serial, parse_uuid
from netboot.machines.values import Inventory

_KINDS = {"machines": "machine", "profiles": "profile", "channels": "channel"}


@dataclass(frozen=True, slots=True)
class _Declared:
    """One raw item of a file, not necessarily valid: checks across items must not wait for the form of each."""

    kind: str
    name: str
    document: Document
    location: strict.Location
    value: dict[str, Any]

    def line(self, *below: int | str) -> int:
        return self.document.line((*self.location, *below))

    def place(self, *below: int | str) -> str:
        return f"{self.document.file}:{self.line(*below)}"

    def fault(self, message: str, *below: int | str) -> Fault:
        key = f"{self.location[0]}[{self.location[1]}]" + "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in below
        )
        return Fault(self.document.file, self.line(*below), key, message)


def load_inventory(folder: Path) -> Inventory:
    """Everything that the files of `folder` declare, merged in the order of their names.

    Raises:
        images.values.strict.FaultsError: with every fault of every file: form, names declared twice, identifiers of two
            machines, references to what is not declared.
    """
    documents, faults = _documents(folder)
    faults_of_files = bool(faults)
    inventories: list[Inventory] = []
    for document in documents:
        try:
            inventories.append(strict.check(document, Inventory))
        except FaultsError as error:
            faults += error.faults
    items = [item for document in documents for item in _items(document)]
    faults += _names_declared_twice(items)
    faults += _identifiers_of_two_machines(items)
    if not faults_of_files:  # what an unreadable file declares is unknown, not undeclared
        faults += _unknown_references(items)
    if faults:
        raise FaultsError(faults)
    return Inventory(
        machines=tuple(machine for inventory in inventories for machine in inventory.machines),
        profiles=tuple(profile for inventory in inventories for profile in inventory.profiles),
        channels=tuple(channel for inventory in inventories for channel in inventory.channels),
    )


def declared_at(folder: Path, kind: str, name: str) -> str | None:
    """`file:line` of the declaration of a machine, profile or channel; None where it cannot be found."""
    documents, _ = _documents(folder)
    items = (item for document in documents for item in _items(document))
    return next((item.place("name") for item in items if (item.kind, item.name) == (kind, name)), None)


def _files(folder: Path) -> list[Path]:
    """Raises OSError where the folder cannot be looked into: `glob` would find nothing in it."""
    return sorted(path for path in folder.iterdir() if path.match("*.yaml") and not path.name.startswith("."))


def _documents(folder: Path) -> tuple[list[Document], list[Fault]]:
    """Those that can be read, and what is wrong with the others or with the folder.

    An empty file, or a folder without files, is more likely an accident (a full disk, a volume that is not mounted)
    than an inventory.
    """
    try:
        files = _files(folder)
    except OSError as error:
        return [], [Fault(str(folder), 1, "", _unusable(error))]
    if not files:
        message = "has no *.yaml file: is a volume not mounted? A site without machines declares `machines: []`"
        return [], [Fault(str(folder), 1, "", message)]
    documents: list[Document] = []
    faults: list[Fault] = []
    for path in files:
        try:
            document = strict.read(path)
        except FaultsError as error:
            faults += error.faults
            continue
        if document.value in ({}, None):
            faults.append(Fault(str(path), 1, "", "holds nothing: remove the file, or declare `machines: []`"))
        else:
            documents.append(document)
    return documents, faults


def _unusable(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "is not there: the inventory is a folder of *.yaml files"
    if isinstance(error, NotADirectoryError):
        return "is not a folder: the inventory is a folder of *.yaml files"
    return f"cannot be read: {error.strerror}"


def _items(document: Document) -> Iterator[_Declared]:
    value = document.value if isinstance(document.value, dict) else {}
    for key, kind in _KINDS.items():
        listed = value.get(key)
        for number, item in enumerate(listed if isinstance(listed, list) else []):
            if isinstance(item, dict) and isinstance(item.get("name"), str):
                yield _Declared(kind, item["name"], document, (key, number), item)


def _names_declared_twice(items: list[_Declared]) -> Iterator[Fault]:
    first: dict[tuple[str, str], _Declared] = {}
    for item in items:
        other = first.setdefault((item.kind, item.name), item)
        if other is not item:
            message = f"{item.kind} {item.name!r} is declared twice, first in {other.place('name')}"
            yield item.fault(message, "name")


def _identifiers_of_two_machines(items: list[_Declared]) -> Iterator[Fault]:
    first: dict[tuple[str, str], tuple[_Declared, tuple[int | str, ...]]] = {}
    for item in items:
        if item.kind != "machine":
            continue
        for kind, value, below in _identifiers(item):
            other, where = first.setdefault((kind, value), (item, below))
            if (other, where) == (item, below):
                continue
            if other is item:
                yield item.fault(f"{kind} {value} is here twice", *below)
            elif other.name != item.name:  # the same name is a fault of its own
                message = (
                    f"{kind} {value} is of two machines, {item.name!r} and {other.name!r} in {other.place(*where)}"
                )
                yield item.fault(message, *below)


def _identifiers(item: _Declared) -> Iterator[tuple[str, str, tuple[int | str, ...]]]:
    """Kind, normalised value and place of each identifier that can be read; the others are faults of form."""
    match = item.value.get("match")
    if not isinstance(match, dict):
        return
    macs = match.get("macs")
    for number, mac in enumerate(macs if isinstance(macs, list) else []):
        yield from _readable("MAC", parse_mac, mac, ("match", "macs", number))
    yield from _readable("UUID", parse_uuid, match.get("uuid"), ("match", "uuid"))
    yield from _readable("serial", parse_serial, match.get("serial"), ("match", "serial"))
    ek = match.get("ek_sha256")
    if isinstance(ek, str):
        yield "EK", ek, ("match", "ek_sha256")
    node = item.value.get("node")
    given = node.get("name") if isinstance(node, dict) else None
    cluster = item.value.get("cluster", "default")
    if isinstance(given or item.name, str) and isinstance(cluster, str):
        # two machines under one node's name would each be let in as the other
        below: tuple[int | str, ...] = ("node", "name") if given else ("name",)
        yield f"in cluster {cluster} the node", given or item.name, below


def _readable(
    kind: str, parse: Callable[[object], str], value: object, below: tuple[int | str, ...]
) -> Iterator[tuple[str, str, tuple[int | str, ...]]]:
    try:
        yield kind, parse(value), below
    except ValueError:
        return


def _unknown_references(items: list[_Declared]) -> Iterator[Fault]:
    names = {kind: sorted({item.name for item in items if item.kind == kind}) for kind in _KINDS.values()}
    for user, target in (("machine", "profile"), ("profile", "channel")):
        known = set(names[target])
        for item in items:
            reference = item.value.get(target) if item.kind == user else None
            if isinstance(reference, str) and reference not in known:
                yield item.fault(
                    f"no {target} is named {reference!r}; {_nearest(reference, target, names[target])}", target
                )


def _nearest(reference: str, kind: str, names: list[str]) -> str:
    near = difflib.get_close_matches(reference, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"declared {kind}s: {', '.join(names)}" if names else f"no {kind} is declared at all"
