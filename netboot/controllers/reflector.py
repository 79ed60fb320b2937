"""Follow a watch for ever: what it brings is handed on; what it raises is said, and it is tried again, ever later."""

import logging
import random
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from netboot.lifecycle.errors import CannotTellError

log = logging.getLogger(__name__)
T = TypeVar("T")

SHORT_SECONDS = 2.0
"""The first round, and the one after a failure: a watch that brings nothing says only by its end that all is well."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0


def backoff(failures: int, *, draw: Callable[[float, float], float] = random.uniform) -> float:
    """Seconds before the next try after so many failures in a row: doubled with each, with jitter."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 10)) * draw(0.5, 1.0)


class Reflector(Generic[T]):
    """`watch(seconds)` brings everything that there is, then what changes, for about so long. One thread runs this.

    `seconds`: of a round; with each, everything is looked at anew, so that nothing that was missed is missed for ever.
    """

    def __init__(
        self, what: str, watch: Callable[[float], Iterator[T]], take: Callable[[T], None], seconds: float
    ) -> None:
        self._what, self._watch, self._take, self._seconds = what, watch, take, seconds
        self._stop = threading.Event()
        self.failures = 0
        """In a row; 0: the last round, or what came since, went well."""
        self.unavailable = 0
        """Times that it could not be followed, since the start."""
        self.problem: str | None = f"{what} have not been looked at yet"

    def stop(self) -> None:
        """End soon; a round that waits for the apiserver is not waited for."""
        self._stop.set()

    def run(self) -> None:
        """Until `stop`."""
        short = True
        while not self._stop.is_set():
            try:
                self._round(SHORT_SECONDS if short else self._seconds)
                self._went_well()
                short = False
            except CannotTellError as error:
                self._failed(str(error))
                short = True
            except Exception:
                log.exception("following %s failed", self._what)
                self._failed("a defect; see the log")
                short = True

    def _round(self, seconds: float) -> None:
        for one in self._watch(seconds):
            self._went_well()
            self._take(one)
            if self._stop.is_set():
                return

    def _went_well(self) -> None:
        if self.failures:
            log.warning("%s are followed again", self._what)
        self.failures, self.problem = 0, None

    def _failed(self, why: str) -> None:
        self.failures += 1
        self.unavailable += 1
        wait = backoff(self.failures)
        if self.failures == 1 or wait > LONGEST_WAIT / 4:
            log.error("%s cannot be followed: %s; tried again in %.1f s", self._what, why, wait)
        self.problem = why
        self._stop.wait(wait)
