"""What the supervisor hands to a plane, and what a plane does first with it: the other side of `netboot.supervise`."""

import ctypes
import os
import signal
from contextlib import suppress
from typing import Literal

from images.values.strict import Strict
from netboot.config import Config

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Orders(Strict):
    """Read by a plane from its standard input as JSON. File descriptors are inherited.

    The configuration travels whole, so that a plane that is started again works with the one that was checked at the
    start, whatever the file has become since.
    """

    plane: Literal["boot", "web", "controllers", "join", "approver", "nodes", "fetcher"]
    index: int = 0
    cluster: str = ""
    """Of `approver` and `nodes`."""
    name: str
    config: Config
    listener: int | None = None
    ready: int
    """Write end of a pipe: a byte says that the plane is ready."""
    supervisor: int
    """Process id of the supervisor, with whom the plane ends."""


class OrphanedError(Exception):
    """The supervisor ended before the plane had begun."""


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


def say_ready(orders: Orders) -> None:
    """Tell the supervisor that this plane is ready; telling it twice, or nobody, does no harm."""
    with suppress(OSError):
        os.write(orders.ready, b"1")
