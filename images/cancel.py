"""One way to end what several threads work on: steps, and the tools that they run, look whether they are to go on."""

import os
import select
from contextvars import ContextVar

from images.errors import ImageError

_CURRENT: ContextVar["Cancellation | None"] = ContextVar("images.cancel", default=None)


class EndedError(ImageError):
    """What was going on was ended: because something else failed, or by Ctrl-C. It is never the cause itself."""


class Cancellation:
    """Told once, for good. Whoever waits for something else may wait for its file descriptor too."""

    def __init__(self) -> None:
        self._told = False
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def close(self) -> None:
        """Nobody is there any more who could be told."""
        os.close(self._event)

    def tell(self) -> None:
        """All that is going on is to end. May be called again."""
        self._told = True
        os.eventfd_write(self._event, 1)

    def fileno(self) -> int:
        """Ready to be read from as soon as it was told."""
        return self._event

    def adopt(self) -> None:
        """From now on what this thread does, `images.run` too, ends when this is told."""
        _CURRENT.set(self)

    def check(self) -> None:
        """Raise EndedError if it was told."""
        if self._told:
            raise EndedError("ended, because another step failed or the build was interrupted")


def current() -> Cancellation | None:
    """What ends this thread's work; None: nothing but itself."""
    return _CURRENT.get()


def check() -> None:
    """Raise EndedError if this thread's work is to end."""
    ending = current()
    if ending:
        ending.check()


def pause(seconds: float) -> None:
    """Wait.

    Raises:
        EndedError: as soon as this thread's work is to end.
    """
    ending = current()
    select.select([ending] if ending else [], [], [], seconds)
    check()
