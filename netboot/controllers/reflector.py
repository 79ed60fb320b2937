"""Follow a watch for ever: what it brings is handed on; what it raises is said, and it is tried again, ever later."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from images.values.backoff import Backoff
from netboot.controllers.runner import DEFECT
from netboot.lifecycle.errors import CannotTellError

log = logging.getLogger(__name__)
T = TypeVar("T")

SHORT_SECONDS = 2.0
"""The first round, and the one after a failure: a watch that brings nothing says only by its end that all is well."""
AGAIN = Backoff(first=0.5, longest=30.0)
"""Before an apiserver that did not answer is asked again."""


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
        """List and watch, again and again with a pause after a failure, until `stop`."""
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
                self._failed(DEFECT)
                short = True

    def _round(self, seconds: float) -> None:
        for thing in self._watch(seconds):
            self._went_well()
            self._take(thing)
            if self._stop.is_set():
                return

    def _went_well(self) -> None:
        if self.failures:
            log.warning("%s are followed again", self._what)
        self.failures, self.problem = 0, None

    def _failed(self, why: str) -> None:
        self.failures += 1
        self.unavailable += 1
        wait = AGAIN.seconds(self.failures)
        if self.failures == 1 or AGAIN.bound(self.failures) > AGAIN.longest / 4:
            log.error("%s cannot be followed: %s; tried again in %.1f s", self._what, why, wait)
        self.problem = why
        self._stop.wait(wait)
