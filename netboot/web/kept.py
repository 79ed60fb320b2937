"""An answer that costs much and that anybody may ask for: made by one at a time, and given to all for a moment."""

import threading
from collections.abc import Callable
from time import monotonic

from netboot.lifecycle.errors import OverloadedError

WAIT_SECONDS, MOST_WAITING = 5.0, 4
"""Whoever asks is a stranger, and keeps a thread: where so many wait, others are told at once."""
OLDEST_SECONDS = 30.0
"""While another one is being made the one before is given, up to this age."""


class Kept:
    """For `seconds`. Safe for threads: who asks while it is made gets the one before, or waits a while for it."""

    def __init__(self, seconds: float, now: Callable[[], float] = monotonic) -> None:
        self._seconds, self._now, self._lock = seconds, now, threading.Lock()
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)
        self._last: tuple[float, bytes] = float("-inf"), b""
        """When it was made, and what it is, as one: who reads it may not have the lock."""

    def of(self, make: Callable[[], bytes]) -> bytes:
        """What is kept, or what `make` makes.

        Raises:
            OverloadedError: somebody else makes it and does not end. What `make` raises.
        """
        if not self._lock.acquire(blocking=False):
            at, body = self._last
            if self._now() - at < OLDEST_SECONDS:
                return body
            self._wait()
        try:
            at, body = self._last
            if self._now() - at >= self._seconds:
                body = make()
                self._last = self._now(), body
            return body
        finally:
            self._lock.release()

    def _wait(self) -> None:
        if self._waiting.acquire(blocking=False):
            try:
                if self._lock.acquire(timeout=WAIT_SECONDS):
                    return
            finally:
                self._waiting.release()
        raise OverloadedError("it is being made for somebody else")
