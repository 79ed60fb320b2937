"""The controllers' process: the projector in the main thread, the keeper beside it. If either fails, the process ends
and the supervisor starts it again."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from netboot.controllers.projection import Projector
from netboot.controllers.snapshot_publisher import Keeper
from netboot.lifecycle.ports import Clock

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
KEEP_SECONDS = 0.4
STATUS_SECONDS = 1.0
PROTECT_SECONDS = 20.0

Say = Callable[[str, dict[str, Any]], None]


class Controllers:
    """Both loops. `say(name, status)` publishes what one of them says of itself.

    Signal handlers only set plain flags: an Event's lock may be held by the very thread that is interrupted.
    """

    def __init__(self, keeper: Keeper, projector: Projector, say: Say, clock: Clock) -> None:
        self._keeper, self._projector, self._say, self._clock = keeper, projector, say, clock
        self._stop = self._hurry = self._failed = False

    def run(self, ready: Callable[[], None]) -> None:
        """Until SIGTERM or SIGINT; then take over what is journalled, and return. SIGHUP: read everything again now.

        Raises:
            RuntimeError: the keeper failed; its log line says how.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._heed)
        self._keeper.step(now=True)
        ready()
        keeper = threading.Thread(target=self._keep_for_ever, name="keeper", daemon=True)
        keeper.start()
        self._project_for_ever()
        self._projector.finish()
        keeper.join(5.0)
        if self._failed:
            raise RuntimeError("the keeper failed")

    def _heed(self, number: int, _frame: object) -> None:
        if number == signal.SIGHUP:
            self._hurry = True
        else:
            self._stop = True

    def _project_for_ever(self) -> None:
        """Machines first: in a storm the workers get the processors, and bookkeeping what they leave (sched(7)); the
        journals keep its facts until it catches up. Of this thread alone: a new inventory must not wait for that."""
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        said = float("-inf")
        while not self._stop:
            more = self._projector.step()
            if time.monotonic() - said >= STATUS_SECONDS:
                said = time.monotonic()
                self._report("projector", self._projector.progress.status(self._clock.now_ms()))
            if not more:
                time.sleep(LOOK_SECONDS)

    def _keep_for_ever(self) -> None:
        looked = said = protected = float("-inf")
        try:
            while not self._stop:
                now = time.monotonic()
                if self._hurry or now - looked >= KEEP_SECONDS:
                    looked, hurry, self._hurry = now, self._hurry, False
                    if self._keeper.step(now=hurry) or hurry or now - said >= STATUS_SECONDS:
                        said = now
                        self._report("keeper", self._keeper.status())
                    if now - protected >= PROTECT_SECONDS:
                        protected = now
                        self._keeper.protect()
                time.sleep(LOOK_SECONDS)
        except BaseException:
            log.exception("the keeper failed")
            self._failed = self._stop = True

    def _report(self, name: str, status: dict[str, Any]) -> None:
        try:
            self._say(name, status)
        except OSError as error:
            log.warning("status of the %s cannot be written: %s", name, error.strerror)
