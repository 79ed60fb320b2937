"""Opens files for processes that are confined: the other side of `netboot.credentials`.

A thread of the supervisor, so that a file system that stands still stops nobody from being started again.
"""

import errno
import os
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from netboot.credentials import ANSWER, LONGEST


class Broker:
    """Answers whoever has an end that `offer` returned, for as long as the supervisor lives."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def offer(self, may: Callable[[Path], bool]) -> socket.socket:
        """An end for a process to inherit, for which files are opened of which `may` says so. Before `start`."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._selector.register(ours, selectors.EVENT_READ, may)
        return theirs

    def start(self) -> None:
        """Answer from now on."""
        threading.Thread(target=self._answer_for_ever, name="broker", daemon=True).start()

    def _answer_for_ever(self) -> None:
        while True:
            for key, _ in self._selector.select():
                assert isinstance(key.fileobj, socket.socket)
                with suppress(OSError):  # it ended, or takes no answers: nobody else may wait for that
                    _answer(key.fileobj, key.data)


def _answer(connection: socket.socket, may: Callable[[Path], bool]) -> None:
    data = connection.recv(8 + LONGEST)
    question, path = data[:8].ljust(8, b"\0"), Path(os.fsdecode(data[8:]))
    try:
        if not may(path):
            raise PermissionError(errno.EACCES, "not for this process")
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        connection.send(ANSWER.pack(question, getattr(error, "errno", None) or errno.EINVAL))
        return
    try:
        socket.send_fds(connection, [ANSWER.pack(question, 0)], [descriptor])
    finally:
        os.close(descriptor)
