"""An answer that costs much and that anybody may ask for: made by one at a time, and given to all for a moment."""

import threading
from collections.abc import Callable
from time import monotonic

from netboot.lifecycle.errors import OverloadedError

WAIT_SECONDS = 5.0
OLDEST_SECONDS = 30.0
"""While another one is being made the one before is given, up to this age."""


class Kept:
    """For `seconds`. Safe for threads: who asks while it is made gets the one before, or waits a while for it."""

    def __init__(self, seconds: float, now: Callable[[], float] = monotonic) -> None:
        self._seconds, self._now, self._lock = seconds, now, threading.Lock()
        self._at, self._body = float("-inf"), b""

    def of(self, make: Callable[[], bytes]) -> bytes:
        """What is kept, or what `make` makes.

        Raises:
            OverloadedError: somebody else makes it and does not end. What `make` raises.
        """
        if not self._lock.acquire(blocking=False):
            if self._now() - self._at < OLDEST_SECONDS:
                return self._body
            if not self._lock.acquire(timeout=WAIT_SECONDS):
                raise OverloadedError("it is being made for somebody else")
        try:
            if self._now() - self._at >= self._seconds:
                body = make()
                self._at, self._body = self._now(), body
            return self._body
        finally:
            self._lock.release()
