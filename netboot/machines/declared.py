"""The inventory's files as they are written: raw items with their places, for checks that look across all of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from images.values import strict
from images.values.strict import Document, Fault, FaultsError

KINDS = {
    "machines": "machine",
    "profiles": "profile",
    "channels": "channel",
    "classes": "class",
    "racks": "rack",
    "maintenance": "window",
}
"""A file's key → what one of its items is called."""
LISTS = {kind: listed for listed, kind in KINDS.items()}
"""The other way round."""
LARGEST_ITEM = 64 * 1024
"""Bytes of one item, as JSON, that comes by the API or as an object. A file has as many as its reader takes."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One raw item of a file, not necessarily valid: checks across items must not wait for the form of each."""

    kind: str
    name: str
    document: Document
    location: strict.Location
    value: dict[str, Any]

    def line(self, *below: int | str) -> int:
        """Where the item is, or what is below it."""
        return self.document.line((*self.location, *below))

    def place(self, *below: int | str) -> str:
        """`file:line` of the same; without a line, where it stands in none."""
        line = self.line(*below)
        return f"{self.document.file}:{line}" if line else self.document.file

    def fault(self, message: str, *below: int | str) -> Fault:
        """What is wrong with it."""
        key = f"{self.location[0]}[{self.location[1]}]" + "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in below
        )
        return Fault(self.document.file, self.line(*below), key, message, f"{self.location[0]}/{self.name}")

    def inner(self, key: str) -> dict[str, Any]:
        """The mapping under a key; empty where there is none."""
        value = self.value.get(key)
        return value if isinstance(value, dict) else {}


def _files(folder: Path) -> list[Path]:
    """Raises OSError where the folder cannot be looked into: `glob` would find nothing in it."""
    return sorted(path for path in folder.iterdir() if path.match("*.yaml") and not path.name.startswith("."))


def overlooked(folder: Path) -> list[Path]:
    """What looks like files of an inventory and is not read: of another ending, in folders below.

    Raises:
        OSError: the folder cannot be looked into.
    """
    inner = [path for path in folder.iterdir() if path.is_dir()]
    below = [path for each in inner for ending in ("*.yaml", "*.yml") for path in each.rglob(ending)]
    found = [*folder.glob("*.yml"), *below]
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


Edit = Mapping[str, str | None]
"""What files of the folder are to hold, by name; None: it is to go."""
NO_EDIT: Edit = {}
Read = Callable[[Path], Document]
"""What reads a file, as `strict.read`."""


def documents_of(folder: Path, edit: Edit = NO_EDIT, read: Read = strict.read) -> tuple[list[Document], list[Fault]]:
    """Those that can be read, and what is wrong with the others or with the folder. `edit`: as if it were done.

    An empty file, or a folder without files, is more likely an accident (a full disk, a volume that is not mounted)
    than an inventory.
    """
    try:
        files = {path.name: path for path in _files(folder)} | {name: folder / name for name in edit}
    except OSError as error:
        return [], [Fault(str(folder), 0, "", _unusable(error))]
    files = {name: path for name, path in files.items() if name not in edit or edit[name] is not None}
    if not files:
        message = "has no *.yaml file: is a volume not mounted? A site without machines declares `machines: []`"
        return [], [Fault(str(folder), 0, "", message)]
    documents: list[Document] = []
    faults: list[Fault] = []
    for name, path in sorted(files.items()):
        text = edit.get(name)
        try:
            document = read(path) if text is None else strict.parse(text, str(path))
        except FaultsError as error:
            faults += error.faults
            continue
        if document.value in ({}, None):
            faults.append(Fault(str(path), 0, "", "holds nothing: remove the file, or declare `machines: []`"))
        else:
            documents.append(document)
    return documents, faults


def _unusable(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "is not there: the inventory is a folder of *.yaml files"
    if isinstance(error, NotADirectoryError):
        return "is not a folder: the inventory is a folder of *.yaml files"
    return f"cannot be read: {error.strerror}"


def items_of(document: Document) -> Iterator[Declared]:
    """Every machine, profile, channel, class and rack of a file that has a name."""
    value = document.value if isinstance(document.value, dict) else {}
    for key, kind in KINDS.items():
        listed = value.get(key)
        for number, item in enumerate(listed if isinstance(listed, list) else []):
            if isinstance(item, dict) and isinstance(item.get("name"), str):
                yield Declared(kind, item["name"], document, (key, number), item)
