"""Confining this process to what it may touch, as far as the kernel goes."""

import ctypes
import logging
import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from netboot.confine import landlock, seccomp
from netboot.confine.access import Access
from netboot.confine.landlock import RENAMES_ABI, Rules

_PR_SET_DUMPABLE = 4  # linux/prctl.h
_CAPABILITIES = 0x20080522  # _LINUX_CAPABILITY_VERSION_3
_KEPT = 1 << 1 | 1 << 3  # CAP_DAC_OVERRIDE, CAP_FOWNER: root works with other accounts' files, Landlock says which
_SQLITE = ("", "-wal", "-shm")
_LOCK_SECONDS = 2.0

log = logging.getLogger(__name__)


def shortcomings() -> list[str]:
    """What this kernel cannot enforce, in words; empty: everything."""
    lacks = landlock.missing(landlock.abi())
    if not seccomp.supported():
        lacks.append("system calls (on x86-64 and 64-bit ARM alone)")
    return lacks


def enter(access: Access, ports: frozenset[int]) -> None:
    """Give up, for good, all that is not in `access`; `ports`: those to connect to beside its own. Before any thread.

    Raises:
        OSError: the kernel has what is needed, and refuses.
    """
    version = landlock.abi()
    connect = None if access.connect is None else access.connect | ports
    with _prepared(access.databases) as files:
        if version >= (RENAMES_ABI if access.stores else 1):
            write = (*access.write, *files)
            lists = tuple(path if path.exists() else path.parent for path in access.public_keys)
            landlock.restrict(Rules(access.read, write, lists, access.stores, connect), version)
    if seccomp.supported():
        seccomp.restrict(network=connect is None or bool(connect), others=access.forks)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # nobody of this account reads its memory, and it leaves no core
    _give_up_capabilities(libc)


def _give_up_capabilities(libc: ctypes.CDLL) -> None:
    """All but those that root needs, where it has these. Another account may have been given some, as to listen on a
    low port.

    Raises:
        OSError: the kernel refuses.
    """
    header, has = struct.pack("Ii", _CAPABILITIES, 0), ctypes.create_string_buffer(struct.calcsize("6I"))
    if libc.capget(header, has) != 0:
        raise OSError(ctypes.get_errno(), "capget: which capabilities it has cannot be told")
    permitted = struct.unpack("6I", has.raw)[1]
    kept = _KEPT & permitted if os.geteuid() == 0 else 0
    wanted = struct.pack("6I", kept, kept, 0, 0, 0, 0)
    if has.raw != wanted and libc.capset(header, wanted) != 0:
        raise OSError(ctypes.get_errno(), "capset: capabilities cannot be given up")


@contextmanager
def _prepared(databases: tuple[Path, ...]) -> Iterator[list[Path]]:
    """The files of databases, made where they are not there: a rule is of a file, not of a name. They are open while
    in the block, for SQLite removes two of them with the last who closes it; after that it may not."""
    files: list[Path] = []
    with ExitStack() as stack:
        for path in databases:
            try:
                db = stack.enter_context(closing(sqlite3.connect(path, timeout=_LOCK_SECONDS, isolation_level=None)))
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.Error as error:
                log.warning("%s cannot be used (%s): once it can, restart this process", path, error)
            files += [path.with_name(path.name + suffix) for suffix in _SQLITE]
        yield files
