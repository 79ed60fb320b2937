"""Run a piece of code in a child process that is killed, or refused by the file system, at its n-th step.

Steps are the interpreter's own audit events of the file system (open, rename, mkdir, remove, …) and `os.fsync`, as far
as they concern the folder under test; so nothing in the product knows of this.

The children are of a process of their own, this file run as a program, which is told the code by pickle: whoever runs
tests has all of them in its memory, and copies its page tables at each fork.
"""

import atexit
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
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
    return str(_ordered(_child, step, folder, code, None, False))


def refused_at(step: int, folder: Path, code: Callable[[], object], errno: int, *, lasting: bool) -> str:
    """Run `code` in a child whose `step`-th step (and all later ones, if `lasting`) fails with `errno`.

    DONE: it ended well. REFUSED: with an error of ours. WRONG: with any other, whose traceback is on stderr.
    """
    return str(_ordered(_child, step, folder, code, errno, lasting))


def steps(folder: Path, code: Callable[[], object]) -> int:
    """How many steps `code` has."""
    return int(_ordered(_steps, folder, code))


def _ordered(what: Callable[..., object], *arguments: object) -> Any:
    forking = _forking()
    assert forking.stdin is not None
    assert forking.stdout is not None
    forking.stdin.write(pickle.dumps((what.__name__, arguments)))  # whole or not at all
    forking.stdin.flush()
    return pickle.load(forking.stdout)


@cache
def _forking() -> "subprocess.Popen[bytes]":
    """The process that forks; it ends with this one."""
    argv = [sys.executable, "-m", "tests.unit.images.faults"]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    atexit.register(process.communicate)
    return process


def _follow_orders() -> None:
    known: dict[str, Callable[..., object]] = {"_steps": _steps, "_child": _child}
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(known[name](*arguments), sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _steps(folder: Path, code: Callable[[], object]) -> int:
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


def _child(step: int, folder: Path, code: Callable[[], object], errno: int | None, lasting: bool) -> str:
    """`errno`: of what its step fails with; None: it is killed."""

    def strike() -> None:
        if errno is None:
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            raise OSError(errno, os.strerror(errno))

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


if __name__ == "__main__":
    _follow_orders()
