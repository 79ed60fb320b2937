"""Files of the inventory that the API writes: one item in each, or machines that came together, as it writes them. What
a person wrote stays theirs.

Nothing is written that would not be taken, and a crash at any moment leaves the old file or the new.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from images.errors import NotDurableError, StoreError
from images.values import files
from images.values.flock import exclusive
from images.values.strict import Document
from netboot.config import Config
from netboot.lifecycle.errors import InventoryReadOnlyError
from netboot.machines.declared import KINDS, Declared, Edit, items_of
from netboot.machines.values import Inventory
from netboot.machines.written import as_written, is_json, text_of
from netboot.stores.inventory import declarations_of, place_of, read_inventory
from netboot.stores.parsed import Parsed

LOCK_SECONDS = 5.0
"""For which a writer waits for another one, in whichever process."""
_LOCK = ".lock"
_AS_OBJECTS = "`netboot cluster inventory` prints files of an inventory as objects"
_TOGETHER = "import-"
_LEFT = re.compile(rf"\.(?:{'|'.join(KINDS.values())}|import)-.+\.yaml\.[0-9]+\.[0-9a-f]{{8}}")
"""Of a process that was killed, as `images.values.files.replacing` names it; an editor's are somebody's."""
_MODE = 0o644


class InventoryFiles:
    """The folder `config.inventory`."""

    def __init__(self, config: Config) -> None:
        self._config, self.folder = config, config.inventory
        self._declarations = declarations_of(config, Parsed().read)
        self.where = self._declarations.where
        """The folder, or what there is in its place."""

    def items(self, kind: str) -> tuple[list[Declared], tuple[str, ...]]:
        """Those of a kind that are declared, as they are written; and what is wrong with files, or items, that cannot
        be told. `kind`: what one is called, as in `netboot.machines.declared`; so in all that follows."""
        documents, faults = self._declarations.documents()
        items = [item for document in documents for item in items_of(document) if item.kind == kind]
        odd = [item for item in items if not is_json(item.value)]
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

    def kept_file(self, kind: str, name: str, item: Declared | None) -> str:
        """Likewise of an item, or of where it would be: files that the API did not write are not written by it."""
        path = self.folder / _file_of(kind, name) if item is None else Path(item.document.file)
        try:
            return self._kept_file(path, item)
        except OSError as error:
            return f"{path} cannot be looked at: {error.strerror}"

    def _kept_file(self, path: Path, item: Declared | None) -> str:
        if item is None:
            there = os.path.lexists(path)
            return f"{path} is there already, and declares something else: edit it there" if there else ""
        ours = path.name == _file_of(item.kind, item.name) or path.name.startswith(_TOGETHER)
        if not ours or not _plain(path):
            return f"{item.name} is declared at {item.place('name')}, in a file that a person wrote: edit it there"
        listed = item.document.value[item.location[0]]
        text = files.bytes_of(path, files.LARGE).decode()
        if not all(isinstance(each, dict) for each in listed) or text != as_written(item.kind, listed):
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

    def edit(self, kind: str, name: str, value: dict[str, Any] | None, before: Declared | None) -> Edit:
        """The edit that declares an item, or takes it out. `before`: as it is declared.

        Raises:
            FaultsError: it cannot be written.
        """
        if before is None or self.is_of_one(before):
            return {_file_of(kind, name): text_of(kind, value) if value is not None else None}
        listed = before.document.value[before.location[0]]
        changed = [each if place != before.location[1] else value for place, each in enumerate(listed)]
        left = [each for each in changed if each is not None]
        return {Path(before.document.file).name: text_of(kind, *left) if left else None}

    def is_of_one(self, item: Declared) -> bool:
        """Whether its file is named for it, and holds no other."""
        return not Path(item.document.file).name.startswith(_TOGETHER)

    def together(self, values: Sequence[dict[str, Any]]) -> Edit:
        """The edit that declares machines which nobody declares yet, in one file: all of them are there, or none.

        Raises:
            FaultsError: they cannot be written. InventoryReadOnlyError: something is in the way.
        """
        text = text_of("machine", *values)
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


def _file_of(kind: str, name: str) -> str:
    return f"{kind}-{name}.yaml"


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
