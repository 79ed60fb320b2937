"""Run a piece of code in a child process that is killed, or refused by the file system, at its n-th step.

Steps are the interpreter's own audit events of the file system (open, rename, mkdir, remove, …) and `os.fsync`, as far
as they concern the folder under test; so nothing in the product knows of this.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from images.errors import ImageError

DONE, KILLED, REFUSED, WRONG = "done", "killed", "refused", "wrong"
_EVENTS = {
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.utime",
    "os.chmod",
    "os.symlink",
    "os.truncate",
}
_EVENTS |= {"os.listdir", "os.scandir", "fcntl.flock"}


def killed_at(step: int, folder: Path, code: Callable[[], object]) -> str:
    """Run `code` in a child that ends by SIGKILL just before its `step`-th step; KILLED, or DONE if it has fewer."""

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    return _child(step, folder, code, die, lasting=False)


def refused_at(step: int, folder: Path, code: Callable[[], object], errno: int, *, lasting: bool) -> str:
    """Run `code` in a child whose `step`-th step (and all later ones, if `lasting`) fails with `errno`.

    DONE: it ended well. REFUSED: with an error of ours. WRONG: with any other, whose traceback is on stderr.
    """

    def fail() -> None:
        raise OSError(errno, os.strerror(errno))

    return _child(step, folder, code, fail, lasting=lasting)


def steps(folder: Path, code: Callable[[], object]) -> int:
    """How many steps `code` has."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            count = _strike_at(0, folder, lambda: None, lasting=False)
            code()
            os.write(writer, str(count()).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        return int(pipe.read())


def _child(step: int, folder: Path, code: Callable[[], object], strike: Callable[[], None], *, lasting: bool) -> str:
    pid = os.fork()
    if pid == 0:
        status = 3
        try:
            _strike_at(step, folder, strike, lasting=lasting)
            code()
            status = 0
        except ImageError:
            status = 1
        except BaseException:  # noqa: BLE001 - reported by the status
            traceback.print_exc()
        finally:
            os._exit(status)
    _, result = os.waitpid(pid, 0)
    if os.WIFSIGNALED(result):
        return KILLED
    return {0: DONE, 1: REFUSED}.get(os.WEXITSTATUS(result), WRONG)


def _strike_at(step: int, folder: Path, strike: Callable[[], None], *, lasting: bool) -> Callable[[], int]:
    count, fsync = 0, os.fsync

    def happens() -> None:
        nonlocal count
        count += 1
        if count == step or (lasting and count > step):
            strike()

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS:
            return
        path = arguments[0]
        if isinstance(path, (str, os.PathLike)) and os.path.isabs(path) and not Path(path).is_relative_to(folder):
            return
        happens()

    def counted(descriptor: Any) -> None:
        happens()
        fsync(descriptor)

    os.fsync = counted  # type: ignore[assignment]
    sys.addaudithook(audit)
    return lambda: count


Event = tuple[str, str]


@contextmanager
def recorded() -> Iterator[list[Event]]:
    """What becomes durable and what gets its name, in order: ("fsync", path), ("mkdir", path), ("rename", new path).

    A file is renamed, or linked, after it was fsynced under its old name: ("rename unsynced", new path) where it was
    not.
    """
    events: list[Event] = []
    fsync, mkdir = os.fsync, os.mkdir
    naming = {name: getattr(os, name) for name in ("rename", "replace", "link")}
    synced: set[int] = set()

    def seen_fsync(descriptor: int) -> None:
        fsync(descriptor)
        synced.add(os.fstat(descriptor).st_ino)
        events.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))

    def seen_as(name: str) -> Callable[..., None]:
        def seen(old: Any, new: Any, **rest: Any) -> None:
            safe = os.path.islink(old) or os.stat(old).st_ino in synced
            naming[name](old, new, **rest)
            events.append(("rename" if safe else "rename unsynced", os.fspath(new)))

        return seen

    def seen_mkdir(path: Any, *rest: Any, **more: Any) -> None:
        mkdir(path, *rest, **more)
        events.append(("mkdir", os.fspath(path)))

    os.fsync, os.mkdir = seen_fsync, seen_mkdir  # type: ignore[assignment]
    for name in naming:
        setattr(os, name, seen_as(name))
    try:
        yield events
    finally:
        os.fsync, os.mkdir = fsync, mkdir
        for name, real in naming.items():
            setattr(os, name, real)
