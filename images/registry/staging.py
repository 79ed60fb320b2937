"""A folder for what is on its way into the store: gone when the block ends, however it ends.

Beside `tmp/`, which every writer of the store sweeps, while a download may take minutes without the writers' lock. Its
lock goes with its process, so the next download sweeps what a killed one left.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from images.store import modes
from images.values import files

INCOMING = "incoming"


@contextmanager
def staging(store: Path) -> Iterator[Path]:
    """An empty folder on the store's file system.

    Raises:
        images.errors.StoreError: it cannot be made.
    """
    parent = store / INCOMING
    try:
        modes.folder(store, store)
        modes.folder(parent, store)
        with _held(parent):  # so that nobody sweeps a folder between its making and its lock
            _sweep(parent)
            folder = Path(mkdtemp(prefix="", dir=parent))
            lock = _open(folder)
            fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise files.refused(f"cannot write to {parent}", error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    descriptor = _open(folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sweep(parent: Path) -> None:
    """Remove what belongs to nobody any more."""
    for folder in parent.iterdir():
        with suppress(OSError):  # gone meanwhile; or somebody holds it
            descriptor = _open(folder)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
