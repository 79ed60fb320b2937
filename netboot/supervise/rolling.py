"""Processes that are started again one after the other, because what they are told at their start has changed."""

import logging
import signal
import time
from collections.abc import Sequence

from netboot.supervise.process import Process

log = logging.getLogger(__name__)

END_SECONDS = 40.0
"""For which one may finish what it has in hand, as with a stop of the whole service."""


class Rolling:
    """The next one is told to end when the one before is ready again. Their listeners stay open all the while."""

    def __init__(self) -> None:
        self._left: list[Process] = []
        self._pid: int | None = None
        self._asked: float | None = None
        """When the first of those that are left was told to end; None: not yet."""

    def begin(self, processes: Sequence[Process]) -> None:
        """All of these, once more where some were under way; who is ending already is told once, and is the first."""
        ending = [each for each in self._left[:1] if self._asked is not None and each.pid in (None, self._pid)]
        self._left = [*ending, *(each for each in processes if not any(each is one for one in ending))]
        if not ending:
            self._asked = None

    def is_told(self, process: Process) -> bool:
        """Whether this very process was told to end by this: its end is no death."""
        asked = self._asked is not None and process.pid is not None
        return bool(self._left) and asked and self._left[0] is process and process.pid == self._pid

    def step(self) -> None:
        """Go on with it."""
        if not self._left:
            return
        process, now = self._left[0], time.monotonic()
        if self._asked is None:
            self._asked, self._pid = now, process.pid
            process.signal(signal.SIGTERM)  # one that is down is told what is new when it is started
        elif process.ready and process.pid != self._pid:
            log.info("%s runs by the new configuration", process.definition.name)
            self._left.pop(0)
            self._asked = None
        elif self.is_told(process) and now - self._asked > END_SECONDS:
            process.signal(signal.SIGKILL)
