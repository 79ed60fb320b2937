"""Code run inside a process of the service that has been started as ever: what somebody has who broke into it.

Python imports a module of this name by itself where it finds one; tests put this folder on PYTHONPATH of a service.
On SIGNAL, a process does what its file of orders says, with all that it has, and writes down how each ended. Both files
are opened before the process is confined, as nothing else is.
"""

import contextlib
import ctypes
import errno
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

SIGNAL = signal.SIGRTMIN + 3
_PTRACE_SEIZE = 0x4206
_libc = ctypes.CDLL(None, use_errno=True)


class _Piece(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _done(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), "")


def _read(path: str) -> None:
    """By itself, and by the way that the process has its own files opened."""
    from netboot import credentials

    with credentials.opened(Path(path)) as file:
        file.read(1)


def _write(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY))


def _create(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(path)


def _replace(path: str) -> None:
    os.rename(path, f"{path}.taken")
    os.rename(f"{path}.taken", path)


def _signal(pid: int) -> None:
    os.kill(pid, 0)


def _limit(pid: int) -> None:
    """A limit of nothing is a signal by another name; here it stays what it was."""
    resource.prlimit(pid, resource.RLIMIT_CPU)


def _starve(pid: int) -> None:
    os.sched_setaffinity(pid, os.sched_getaffinity(0))


def _trace(pid: int) -> None:
    _done(_libc.ptrace(_PTRACE_SEIZE, pid, None, None))


def _memory(pid: int) -> None:
    buffer = ctypes.create_string_buffer(8)
    ours, theirs = _Piece(ctypes.addressof(buffer), 8), _Piece(id(None), 8)
    _done(_libc.process_vm_readv(pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0))


def _environ(pid: int) -> None:
    os.close(os.open(f"/proc/{pid}/environ", os.O_RDONLY))


def _connect(port: int, protocol: int = 0) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as sock:
        sock.settimeout(5)
        sock.connect(("127.0.0.1", port))


def _connect_to(place: tuple[str, int]) -> None:
    address, port = place
    with socket.create_connection((address, port), timeout=5):
        pass


def _connect_multipath(port: int) -> None:
    _connect(port, 262)


def _connect_fast(port: int) -> None:
    with socket.socket() as sock:
        sock.settimeout(5)
        sock.sendto(b"x", 0x20000000, ("127.0.0.1", port))


def _abstract(name: str) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(f"\0{name}")


def _datagram(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"READY=1", path)


def _datagram_of_a_pair(path: str) -> None:
    """An address takes precedence over the other end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.sendto(b"READY=1", path)


def _spill(rows: int) -> None:
    """What a large question does: SQLite goes to a temporary file."""
    import sqlite3

    with contextlib.closing(sqlite3.connect("")) as db:
        db.execute("PRAGMA cache_size = 2")
        db.execute(
            "CREATE TABLE filler AS SELECT randomblob(4000) FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8))"
        )
        try:
            for _ in range(rows):
                db.execute("INSERT INTO filler SELECT randomblob(4000) FROM filler LIMIT 8")
            db.commit()
        except sqlite3.Error as error:
            raise OSError(errno.EACCES, str(error)) from None


def _run(program: str) -> None:
    pid = os.posix_spawn(program, [program], {})  # noqa: TID251 - nobody restarts it
    os.waitpid(pid, 0)


_ACTS: dict[str, Callable[[Any], None]] = {
    "read": _read,
    "write": _write,
    "create": _create,
    "replace": _replace,
    "signal": _signal,
    "limit": _limit,
    "starve": _starve,
    "trace": _trace,
    "memory": _memory,
    "environ": _environ,
    "connect": _connect,
    "connect-to": _connect_to,
    "multipath": _connect_multipath,
    "fast-open": _connect_fast,
    "abstract": _abstract,
    "datagram": _datagram,
    "datagram-pair": _datagram_of_a_pair,
    "spill": _spill,
    "run": _run,
}


def _tried(act: str, what: Any) -> str:
    try:
        _ACTS[act](what)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return "done"


def _break_in(folder: Path, name: str) -> None:
    orders = os.open(folder / "orders", os.O_RDONLY | os.O_CREAT, 0o600)
    answers = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def obey(_number: int, _frame: FrameType | None) -> None:
        wanted = json.loads(os.pread(orders, 1 << 20, 0))
        ended = {label: _tried(act, what) for label, (act, what) in wanted.items()}
        os.write(answers, json.dumps(ended).encode() + b"\n")

    signal.signal(SIGNAL, obey)


if "NETBOOT_TEST_INTRUDER" in os.environ and sys.orig_argv[-2:-1] == ["process"]:
    _break_in(Path(os.environ["NETBOOT_TEST_INTRUDER"]), sys.orig_argv[-1])
