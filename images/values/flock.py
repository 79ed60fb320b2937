"""One writer at a time: an advisory lock on a file, gone with the process that holds it, however that ends."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from images.errors import BusyError
from images.values import files

_POLL_SECONDS = 0.05


class HeldError(BusyError):
    """Another process holds the lock; `holder` is its id, or "unknown"."""

    def __init__(self, holder: str, what: str) -> None:
        super().__init__(f"another process (pid {holder}) is writing to {what}: try again")
        self.holder = holder


@contextmanager
def exclusive(path: Path, what: str, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock file `path`, waiting up to `wait` seconds for another holder to end.

    Raises:
        HeldError: another process holds it still. OSError: the file system refuses.
    """
    lock = _opened(path)
    try:
        deadline = time.monotonic() + wait
        while not _try(lock):
            if time.monotonic() >= deadline:
                holder = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
                raise HeldError(holder, what)
            time.sleep(_POLL_SECONDS)
        with suppress(OSError):  # the id only makes a message better: a full disk must stop neither gc nor the service
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(lock)


@contextmanager
def folder(path: Path) -> Iterator[None]:
    """Be the one writer of files in a folder, waiting until another ends: they need no lock file then.

    Raises:
        OSError: the file system refuses.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    """The file; one that is made is of the account that its folder is of."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        lock = os.open(path, flags | os.O_EXCL, 0o644)
    except FileExistsError:
        return os.open(path, flags, 0o644)
    files.give(lock, path.parent)
    return lock


def _try(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
