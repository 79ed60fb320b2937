"""Whether what is in a file may be another thing than what was read of it."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from netboot.reread import AGAIN_SECONDS, look


class Changed(Protocol):
    """Asked before reading; told once that could be read."""

    def changed(self) -> bool:
        """Whether there may be what was not read; the first time there is. Until `taken`."""
        ...

    def taken(self) -> None:
        """What there was when `changed` was asked last is read."""
        ...


def which(path: Path) -> tuple[int, int] | None:
    """Which file is there, by device and inode; None: none is."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class _Seen:
    """By `_look()`: another value wherever anything changed."""

    _seen: object = None
    _taken: object = ...

    def changed(self) -> bool:
        self._seen = self._look()
        return self._seen != self._taken

    def taken(self) -> None:
        self._taken = self._seen

    def _look(self) -> object:
        raise NotImplementedError


class Replaced(_Seen):
    """A file that is only ever replaced whole, by what `stat` says of it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _look(self) -> object:
        return look(self._path)


class Commits(_Seen):
    """A SQLite file, by what SQLite says of it: its own connection is told when another one, of any process, has
    committed something that a question would find by now (https://sqlite.org/pragma.html#pragma_data_version).

    What `stat` says of the file and its write-ahead log would not do. A commit is written and synced there first, and
    only then does it count (https://sqlite.org/walformat.html, the WAL-index header, which is mapped): who looks and
    reads in between sees files that changed and the rows of before, and no file changes again once it counts.

    For one thread at a time. The connection is open from the first question on, and keeps nobody from writing, or from
    writing the log back.
    """

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path, self._monotonic = path, monotonic
        self._db: sqlite3.Connection | None = None
        self._which: tuple[int, int] | None = None
        self._opened = 0

    def _look(self) -> object:
        try:
            self._open()
            assert self._db is not None
            return self._opened, self._db.execute("PRAGMA data_version").fetchone()[0]
        except (sqlite3.Error, OSError):
            self._close()
            return None, self._monotonic() // AGAIN_SECONDS  # whoever reads it says why, or reads it now and then

    def _open(self) -> None:
        """The file that is there now: one that was replaced has other connections, and counts for itself.

        Raises:
            sqlite3.Error, OSError: there is none, or it cannot be opened; it was replaced meanwhile.
        """
        there = which(self._path)
        if self._db is not None and there == self._which:
            return
        self._close()
        uri = f"{self._path.absolute().as_uri()}?mode=ro"
        self._db = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
        self._which = there
        self._opened += 1
        if which(self._path) != there:
            raise OSError(f"{self._path} was replaced while it was opened")

    def _close(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db = self._which = None
