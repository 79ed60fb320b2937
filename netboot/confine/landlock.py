"""Landlock: a process gives up for good every file, port and signal that it does not name. For it and all it starts.

By system calls, for no library of it is past its first versions (docs/decisions/028). Numbers and structures:
include/uapi/linux/landlock.h; what which ABI brought: https://docs.kernel.org/userspace-api/landlock.html.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_PR_SET_NO_NEW_PRIVS = 38  # linux/prctl.h

_WRITE_FILE, _READ_FILE, _READ_DIR, _REFER, _TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 13, 1 << 14
_CHANGE_FOLDER = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8  # remove a folder, a file; make a folder, a file
_LINK = 1 << 12
_OF_FILES = 1 << 0 | _WRITE_FILE | _READ_FILE | _TRUNCATE | 1 << 15
_READ = _READ_FILE | _READ_DIR
_WRITE = _READ | _WRITE_FILE | _CHANGE_FOLDER | _REFER | _TRUNCATE
_BIND_TCP, _CONNECT_TCP = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2

RENAMES_ABI, TCP_ABI, SCOPES_ABI = 2, 4, 6
_BROUGHT = (
    (1, "5.13", "which files it reads and writes, and tracing"),
    (RENAMES_ABI, "5.19", "which files the processes that write the store read and write"),
    (3, "6.2", "truncating files that it may only read"),
    (TCP_ABI, "6.7", "which TCP ports it connects to"),
    (SCOPES_ABI, "6.12", "signals and abstract sockets of other processes"),
)


@dataclass(frozen=True, slots=True)
class Rules:
    """All that is left. `lists`: folders whose names it sees, and no more; `links`: where it may
    make symbolic links, through which somebody else may write; `connect` None: every TCP port.

    What a path stands for is settled when it is applied: a folder with everything below it, or a file, not what takes
    its name later. Paths that are not there give nothing.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    lists: tuple[Path, ...] = ()
    links: tuple[Path, ...] = ()
    connect: frozenset[int] | None = frozenset()


def abi() -> int:
    """The version of Landlock that this kernel has; 0: none, or it was not chosen at boot."""
    return max(0, _call(_CREATE_RULESET, None, 0, _VERSION))


def missing(version: int) -> list[str]:
    """What a kernel of this ABI cannot enforce, each with the kernel that can."""
    return [f"{what} (Linux {kernel})" for since, kernel, what in _BROUGHT if version < since]


def restrict(rules: Rules, version: int) -> None:
    """Give up everything else, as far as `version`, which must be 1 or more and this kernel's or an older one, goes.

    Threads that run already stay free: call it before the first.

    Raises:
        OSError: the kernel refuses.
    """
    handled = (1 << (16 if version >= 5 else 15 if version >= 3 else 14 if version >= RENAMES_ABI else 13)) - 1
    ports = _BIND_TCP | (_CONNECT_TCP if rules.connect is not None else 0) if version >= TCP_ABI else 0
    scopes = _ABSTRACT_SOCKETS | _SIGNALS if version >= SCOPES_ABI else 0
    size = 24 if version >= SCOPES_ABI else 16 if version >= TCP_ABI else 8
    ruleset = _checked(_CREATE_RULESET, struct.pack("QQQ", handled, ports, scopes)[:size], size, 0)
    try:
        for paths, access in (
            (rules.read, _READ),
            (rules.write, _WRITE),
            (rules.lists, _READ_DIR),
            (rules.links, _LINK),
        ):
            for path in paths:
                _allow(ruleset, path, access & handled)
        if ports & _CONNECT_TCP:
            _allow_ports(ruleset, rules.connect or ())
        if _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
        _checked(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _OF_FILES
        _checked(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", access, descriptor), 0)
    finally:
        os.close(descriptor)


def _allow_ports(ruleset: int, ports: Iterable[int]) -> None:
    for port in ports:
        _checked(_ADD_RULE, ruleset, _NET_PORT, struct.pack("QQ", _CONNECT_TCP, port), 0)


_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long


def _call(number: int, *arguments: int | bytes | None) -> int:
    longs = [value if isinstance(value, bytes) else ctypes.c_size_t(value or 0) for value in arguments]
    result: int = _LIBC.syscall(ctypes.c_long(number), *longs)
    return result


def _checked(number: int, *arguments: int | bytes | None) -> int:
    result = _call(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock (system call {number}): {os.strerror(error)}")
    return result
