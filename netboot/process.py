"""What the supervisor hands to a process, and what that does first with it: the other side of `netboot.supervise`."""

import ctypes
import os
import signal
import socket
from contextlib import suppress
from typing import Literal

from images.values.strict import Strict
from netboot.config import Config

_PR_SET_PDEATHSIG = 1  # linux/prctl.h

Kind = Literal["boot", "management", "controllers", "join", "approver", "nodes", "fetcher"]
"""What a process does: `netboot.processes` has a file of this name for each."""


class ProcessSpec(Strict):
    """Read by a process from its standard input as JSON. File descriptors are inherited.

    The configuration travels whole, so that a process that is started again works with the one that was checked at the
    start, whatever the file has become since.
    """

    kind: Kind
    index: int = 0
    """Of `boot` and `join`, of which there may be several."""
    cluster: str = ""
    """Of `approver` and `nodes`."""
    name: str
    config: Config
    listener: int | None = None
    ready: int
    """Write end of a pipe: a byte says that the process is ready."""
    supervisor: int
    """Process id of the supervisor, with whom the process ends."""
    broker: int | None = None
    """Socket at whose other end the supervisor opens files for it: `netboot.credentials`."""

    def inherited(self) -> socket.socket:
        """The listening socket that the supervisor bound, as an object that owns it: ask once."""
        assert self.listener is not None
        return socket.socket(fileno=self.listener)

    def say_ready(self) -> None:
        """Tell the supervisor that this process is ready; telling it twice, or nobody, does no harm."""
        with suppress(OSError):
            os.write(self.ready, b"1")


class OrphanedError(Exception):
    """The supervisor ended before the process had begun."""


def end_with(parent: int) -> None:
    """Have the kernel kill this process when `parent`, which must be its parent, ends in whatever way.

    SIGKILL, for everything that was acknowledged is durable already, and a successor wants the files and ports now.

    Raises:
        OrphanedError: `parent` has ended already.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        raise OrphanedError("the supervisor has ended")
