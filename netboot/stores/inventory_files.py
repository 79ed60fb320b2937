"""Files of the inventory that the API writes: one machine in each, or those that came together, as it writes them. What
a person wrote stays theirs.

Nothing is written that would not be taken, and a crash at any moment leaves the old file or the new.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from images.errors import NotDurableError, StoreError
from images.values import files, strict
from images.values.flock import exclusive
from images.values.strict import Document, FaultsError
from netboot.config import Config
from netboot.lifecycle.errors import InventoryReadOnlyError
from netboot.machines.declared import Declared, Edit, items_of
from netboot.machines.values import Inventory, Machine
from netboot.stores.inventory import declarations_of, place_of, read_inventory

LOCK_SECONDS = 5.0
"""For which a writer waits for another one, in whichever process."""
_LOCK = ".lock"
_AS_OBJECTS = "`netboot cluster inventory` prints files of an inventory as objects"
_PREFIX, _TOGETHER = "machine-", "import-"
_LEFT = re.compile(rf"\.(?:{_PREFIX}|{_TOGETHER}).+\.yaml\.[0-9]+\.[0-9a-f]{{8}}")
"""Of a process that was killed, as `images.values.files.replacing` names it; an editor's are somebody's."""
_MODE = 0o644
_ORDER = {field.alias or name: place for place, (name, field) in enumerate(Machine.model_fields.items())}


class InventoryFiles:
    """The folder `config.inventory`."""

    def __init__(self, config: Config) -> None:
        self._config, self.folder = config, config.inventory
        self.where = declarations_of(config).where
        """The folder, or what there is in its place."""

    def machines(self) -> tuple[list[Declared], tuple[str, ...]]:
        """Those that are declared, as they are written; and what is wrong with files, or items, that cannot be told."""
        documents, faults = declarations_of(self._config).documents()
        items = [item for document in documents for item in items_of(document) if item.kind == "machine"]
        odd = [item for item in items if not _is_json(item.value)]
        problems = (*map(str, faults), *(f"{item.place()}: has values that JSON has no words for" for item in odd))
        return [item for item in items if item not in odd] if odd else items, problems

    def place(self, kind: str, name: str) -> str:
        """Where a machine, profile, channel or class is declared."""
        return place_of(self._config, kind, name)

    def kept_from(self) -> str:
        """Why nothing may be written there, in words with where to edit it; empty: it may."""
        if self._config.inventory_kubernetes is not None:
            where = f"custom resources of namespace {self._config.inventory_kubernetes.namespace}"
            return f"this site's inventory is {where}: `kubectl apply` there ({_AS_OBJECTS})"
        if not self._config.inventory_writable:
            return f"this site's inventory is its files alone: edit {self.folder}, or set `inventory_writable: true`"
        try:
            if self.folder.is_symlink():
                return f"{self.folder} is a symbolic link: edit the files where it leads"
            tree = _git_tree(self.folder)
        except OSError as error:
            return f"nobody can tell whether {self.folder} is kept in git ({error.strerror}): edit the files there"
        if tree is not None:
            return f"{self.folder} is kept in git: edit it in a clone of {tree}, commit and push"
        return ""

    def kept_file(self, name: str, item: Declared | None) -> str:
        """Likewise of a machine, or of where it would be: files that the API did not write are not written by it."""
        path = self.folder / f"{_PREFIX}{name}.yaml" if item is None else Path(item.document.file)
        try:
            return self._kept_file(path, item)
        except OSError as error:
            return f"{path} cannot be looked at: {error.strerror}"

    def _kept_file(self, path: Path, item: Declared | None) -> str:
        if item is None:
            there = os.path.lexists(path)
            return f"{path} is there already, and declares something else: edit it there" if there else ""
        ours = path.name == f"{_PREFIX}{item.name}.yaml" or path.name.startswith(_TOGETHER)
        if not ours or not _plain(path):
            return f"{item.name} is declared at {item.place('name')}, in a file that a person wrote: edit it there"
        machines = item.document.value["machines"]
        text = files.bytes_of(path, files.LARGE).decode()
        if not all(isinstance(each, dict) for each in machines) or text != _dump(machines):
            return f"{path} was edited by hand, and stays as it is: edit it there, at {item.place('name')}"
        return ""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Nobody else writes by the API meanwhile, in any process.

        Raises:
            InventoryReadOnlyError: nobody may. images.errors.BusyError: somebody else has not ended in time.
            images.errors.StoreError: the file system refuses.
        """
        if why := self.kept_from():
            raise InventoryReadOnlyError(why)
        with ExitStack() as held:
            try:
                held.enter_context(exclusive(self.folder / _LOCK, str(self.folder), LOCK_SECONDS))
            except OSError as error:
                raise files.refused(f"cannot write in {self.folder}", error) from error
            yield

    def edit(self, name: str, value: dict[str, Any] | None, before: Declared | None) -> Edit:
        """The edit that declares a machine, or takes it out. `before`: as it is declared."""
        if before is None or not (file := Path(before.document.file).name).startswith(_TOGETHER):
            return {f"{_PREFIX}{name}.yaml": text_of(value) if value is not None else None}
        machines = before.document.value["machines"]
        changed = [each if place != before.location[1] else value for place, each in enumerate(machines)]
        left = [each for each in changed if each is not None]
        return {file: text_of(*left) if left else None}

    def is_of_one(self, item: Declared) -> bool:
        """Whether its file is named for it, and holds no other."""
        return not Path(item.document.file).name.startswith(_TOGETHER)

    def together(self, values: Sequence[dict[str, Any]]) -> Edit:
        """The edit that declares machines which nobody declares yet, in one file: all of them are there, or none.

        Raises:
            FaultsError: they cannot be written. InventoryReadOnlyError: something is in the way.
        """
        text = text_of(*values)
        name = f"{_TOGETHER}{hashlib.sha256(text.encode()).hexdigest()[:12]}.yaml"
        if os.path.lexists(self.folder / name):
            raise InventoryReadOnlyError(f"{self.folder / name} is there already: move it away")
        return {name: text}

    def declared(self, edit: Edit, sent: Sequence[Document] = ()) -> Inventory:
        """All that would be declared. Raises FaultsError, with every fault of every file and of what was sent."""
        return read_inventory(self._config, edit, sent)

    def write(self, edit: Edit) -> None:
        """Do it. One writes at a time: see `writing`.

        Raises:
            InventoryReadOnlyError: a file would change hands. images.errors.StoreError: the file system refuses. In
            either case nothing was changed, but where what was written first could not be taken away again.
            NotDurableError: all of it was.
        """
        for left in filter(lambda path: _LEFT.fullmatch(path.name), self.folder.glob(".*.yaml.*")):
            with suppress(OSError):
                left.unlink()
        modes = {name: self._mode(self.folder / name) for name in edit}
        new, not_durable = list[Path](), list[NotDurableError]()
        for name, text in edit.items():
            path = self.folder / name
            if text is not None and not os.path.lexists(path):
                new.append(path)
            try:
                _put(path, text, modes[name])
            except NotDurableError as error:
                not_durable.append(error)
            except StoreError:
                for each in new:
                    with suppress(OSError):
                        each.unlink(missing_ok=True)
                raise
        if not_durable:
            raise not_durable[0]

    def _mode(self, path: Path) -> int:
        """That of the file which is there."""
        try:
            found = path.lstat()
        except FileNotFoundError:
            return _MODE
        if stat.S_ISLNK(found.st_mode):
            raise InventoryReadOnlyError(f"{path} is a symbolic link: edit the file where it leads")
        if found.st_uid != os.geteuid():
            raise InventoryReadOnlyError(f"{path} is of another user (uid {found.st_uid}), and stays so: edit it there")
        return stat.S_IMODE(found.st_mode)


def _put(path: Path, text: str | None, mode: int) -> None:
    """Write a file, or take it away. Raises StoreError, NotDurableError."""
    if text is not None:
        files.write(path, text.encode(), mode=mode)
        return
    try:
        path.unlink()
    except OSError as error:
        raise files.refused(f"cannot remove {path}", error) from error
    files.sync_name(path)


def text_of(*values: dict[str, Any]) -> str:
    """A file with those machines alone.

    Raises:
        FaultsError: they cannot be written so that the inventory's reader reads the same.
    """
    try:
        text = _dump(values)
    except RecursionError:
        raise FaultsError([strict.Fault("what was sent", 0, "", "is nested too deep")]) from None
    if strict.parse(text, "what was sent").value != {"machines": list(values)}:
        raise FaultsError([strict.Fault("what was sent", 0, "", "has values that YAML has no words for")])
    return text


def _dump(values: Sequence[dict[str, Any]]) -> str:
    machines = [dict(sorted(value.items(), key=_place)) for value in values]
    return yaml.safe_dump({"machines": machines}, sort_keys=False, allow_unicode=True, width=10_000)


def _place(item: tuple[str, Any]) -> int:
    return _ORDER.get(item[0], len(_ORDER))


def _is_json(value: dict[str, Any]) -> bool:
    """Not so: keys that are no text, bytes, dates, which YAML has."""
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def _plain(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


def _git_tree(folder: Path) -> Path | None:
    """The git work tree that it is in, by either of its names; None: none. A file `.git` is that of a worktree or
    submodule. Raises OSError: nobody can tell."""
    for start in dict.fromkeys((folder.absolute(), folder.resolve(strict=True))):
        for place in (start, *start.parents):
            try:
                (place / ".git").lstat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            return place
    return None
