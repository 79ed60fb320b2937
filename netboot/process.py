"""What the supervisor hands to a process, and what that does first with it: the other side of `netboot.supervise`."""

import ctypes
import os
import signal
import socket
import time
from contextlib import suppress
from typing import Literal

from images.values.strict import Strict
from netboot.config import Config

_PR_SET_PDEATHSIG = 1  # linux/prctl.h

Kind = Literal[
    "boot",
    "management",
    "controllers",
    "join",
    "approver",
    "nodes",
    "fetcher",
    "pause",
    "traces",
    "resources",
    "shipper",
    "keys",
]
"""What a process does: `netboot.processes` has a file of this name for each."""

Loop = Literal["main loop", "publisher", "lifecycle", "rollouts", "arbiter"]
"""What goes round in a process, and has to be heard for as long as it runs."""
LOOPS: dict[Loop, bytes] = {
    "main loop": b"m",
    "publisher": b"p",
    "lifecycle": b"l",
    "rollouts": b"r",
    "arbiter": b"a",
}
"""By what each writes to the pipe."""
READY = b"1"
BEAT_SECONDS = 1.0
"""Between two beats of a loop that goes round oftener."""


class Heartbeat:
    """Called by a loop each time that it goes round: tells the supervisor so. It blocks never, and fails never."""

    def __init__(self, descriptor: int, loop: Loop) -> None:
        self._descriptor, self._byte = descriptor, LOOPS[loop]
        self._at = float("-inf")

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._at >= BEAT_SECONDS:
            self._at = now
            with suppress(OSError):  # the supervisor is frozen itself, and its pipe full
                os.write(self._descriptor, self._byte)


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
    """Write end of a pipe, which does not block: `READY` says that the process is ready, other bytes are heartbeats."""
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
            os.write(self.ready, READY)

    def heartbeat(self, loop: Loop = "main loop") -> Heartbeat:
        """For one loop of this process; from the first beat on it has to go on."""
        return Heartbeat(self.ready, loop)


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
