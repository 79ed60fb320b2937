"""Files that a process may use and not open: the supervisor opens them for it, each time it asks (docs/decisions/029).

So one that is replaced is the new one, and nothing else in its folder is in reach. Where a process is not confined (the
command line), this is plain reading.
"""

import os
import socket
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from images.values import files

ANSWER = struct.Struct("=8si")
"""The eight bytes that began the question, and an errno; with 0 comes a descriptor. The question: they, and a path."""
LONGEST = 4096
_SECONDS = 5.0


class _Broker:
    """The supervisor at the other end of a socket. Safe for threads, and in a process below the one that was given it,
    if only one of the two asks."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(_SECONDS)
        self._connection, self._lock = connection, threading.Lock()

    def open(self, path: Path) -> int:
        question = os.urandom(8)
        with self._lock:
            self._connection.send(question + os.fsencode(path))
            while True:
                data, descriptors, _, _ = socket.recv_fds(self._connection, ANSWER.size, 1)
                asked, error = ANSWER.unpack(data)
                if asked == question:
                    break
                for late in descriptors:  # for somebody who had this end before, or gave up
                    os.close(late)
        if error:
            raise OSError(error, os.strerror(error), str(path))
        os.set_inheritable(descriptors[0], False)
        return descriptors[0]


_broker: _Broker | None = None


def ask(connection: socket.socket) -> None:
    """From now on have this process's files opened at the other end of `connection`, where it may not itself."""
    global _broker
    _broker = _Broker(connection)


def opened(path: Path) -> BinaryIO:
    """The file, as it is now, for reading.

    Raises:
        OSError: there is none, or it may not be read by this process.
    """
    try:
        return files.opened(path)
    except PermissionError:
        if _broker is None:
            raise
        return files.regular(_broker.open(path), path)


def read(path: Path) -> bytes:
    """The content of the file, as it is now.

    Raises:
        OSError: as `opened`.
    """
    with opened(path) as file:
        return files.whole(file, files.SMALL, path)


@contextmanager
def named(path: Path) -> Iterator[Path]:
    """A path by which a library can read the file, as it is now, while in the block: of memory, in no folder.

    Raises:
        OSError: as `opened`.
    """
    descriptor = os.memfd_create("netboot-credential", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as copy:
        copy.write(read(path))
        copy.flush()
        yield Path(f"/proc/self/fd/{descriptor}")


PUT_IT_THERE = "put the file there, and let the service's account read it"


def unread(what: str, error: OSError) -> str:
    """What is said of a file of the configuration that cannot be read, with what to do. `what`: it, and its key."""
    return f"{what} cannot be read: {error.strerror}: {remedy(error, PUT_IT_THERE)}"


def remedy(error: OSError, made: str) -> str:
    """What to do about a file that cannot be read. `made`: how it comes to be there, said only where it is not: who
    may not read one that is in use would replace it."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return made
    return "run this as an account that may read it" if isinstance(error, PermissionError) else "put it right there"


def told_to_others(status: os.stat_result) -> bool:
    """Whether others than this account can read a file of this status.

    What root hands to a group of ours to read, and no more, is ours alone: so Kubernetes mounts a Secret for a
    container that is not root (`fsGroup`, mode 0440), and there is no other way there.
    """
    mode = stat.S_IMODE(status.st_mode)
    handed = status.st_uid == 0 != os.geteuid() and status.st_gid in {os.getegid(), *os.getgroups()}
    return bool(mode & (0o037 if handed else 0o077))


class UnusableSecretError(Exception):
    """A file that is to hold a secret, and why it cannot be used, in words that do not repeat it."""


def secret(path: Path, key: str, what: str = "token") -> str:
    """What a file holds: one line, of a token without spaces. `key`: of the configuration, which names the file.

    Raises:
        UnusableSecretError: it cannot be read, others can read it, or it is no such line.
    """
    try:
        with opened(path) as file:
            status = os.fstat(file.fileno())
            text = file.read(LONGEST).decode("ascii", "replace").strip()
    except OSError as error:
        raise UnusableSecretError(unread(f"{key}: {path}", error)) from None
    if told_to_others(status):
        mode = stat.S_IMODE(status.st_mode)
        raise UnusableSecretError(f"others can read {key} {path} (mode {mode:04o}): `chmod 600 {path}`")
    least, spaces = ("!", " without spaces") if what == "token" else (" ", "")
    if not text or not all(least <= character <= "~" for character in text):
        raise UnusableSecretError(f"{key}: {path} holds no {what}: write one line{spaces}")
    return text
