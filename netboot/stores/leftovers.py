"""Temporary files with secrets in them: locked while somebody works on them, so that the next one can tell what of an
earlier one that was killed is left, and remove it."""

import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from images.errors import StoreError
from images.values import files

_NEW_SECONDS = 60.0
"""A younger one may not be locked yet."""
_OLD_SECONDS = 3600.0
_LEFT = re.compile(r"\.netboot-(?:backup|restore)-[a-z0-9_]{8}")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Around the work on a file or folder: nobody sweeps it.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def prefix_of(command: str) -> str:
    """How names of a command's temporary files begin; eight characters as `tempfile` chooses them come after."""
    return f".netboot-{command}-"


def sweep(folder: Path, command: str) -> None:
    """Remove what the command left in a folder, by its exact form of name, if it is this account's, in nobody's hands
    and a minute old. What cannot be removed stays."""
    with suppress(StoreError):
        for name in files.names(folder):
            if re.fullmatch(re.escape(prefix_of(command)) + "[a-z0-9_]{8}", name):
                _remove(folder / name)


def left(folder: Path) -> Iterator[Path]:
    """What a backup, or its restoring, left in a folder when it was killed, whoever's it is: a minute old, and in
    nobody's hands; where that cannot be seen, for it is another account's, an hour old. Nothing is changed."""
    with suppress(StoreError):
        for name in files.names(folder):
            if _LEFT.fullmatch(name) and _is_left(folder / name):
                yield folder / name


def _is_left(path: Path) -> bool:
    with suppress(OSError):  # it is in somebody's hands, or gone meanwhile
        age = time.time() - path.lstat().st_mtime
        if age < _NEW_SECONDS:
            return False
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except PermissionError:
            return age >= _OLD_SECONDS
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(descriptor)
        return True
    return False


def _remove(path: Path) -> None:
    with suppress(OSError):  # it is in somebody's hands, or gone meanwhile
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid() or time.time() - found.st_mtime < _NEW_SECONDS:
                return
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if stat.S_ISDIR(found.st_mode):
                shutil.rmtree(path)
            elif stat.S_ISREG(found.st_mode):
                path.unlink()
        finally:
            os.close(descriptor)
