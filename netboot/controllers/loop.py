"""The controllers' process: the projection in the main thread, the publisher in another. If either fails, the process
ends and the supervisor starts it again."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable

from netboot.controllers.projection import ProjectionController
from netboot.controllers.snapshot_publisher import SnapshotPublisher
from netboot.lifecycle.ports import Clock
from netboot.status import ProjectionStatus, PublisherStatus

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
KEEP_SECONDS = 0.4
STATUS_SECONDS = 1.0
PROTECT_SECONDS = 20.0

Say = Callable[[str, PublisherStatus | ProjectionStatus], None]


class Controllers:
    """Both loops. `say(name, status)` publishes what one of them says of itself.

    Signal handlers only set plain flags: an Event's lock may be held by the very thread that is interrupted.
    """

    def __init__(self, publisher: SnapshotPublisher, projection: ProjectionController, say: Say, clock: Clock) -> None:
        self._publisher, self._projection, self._say, self._clock = publisher, projection, say, clock
        self._stop = self._hurry = self._failed = False

    def run(self, ready: Callable[[], None]) -> None:
        """Until SIGTERM or SIGINT; then take over what is journalled, and return. SIGHUP: read everything again now.

        Raises:
            RuntimeError: the publisher failed; its log line says how.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._heed)
        self._publisher.step(now=True)
        ready()
        publisher = threading.Thread(target=self._keep_for_ever, name="publisher", daemon=True)
        publisher.start()
        self._project_for_ever()
        self._projection.finish()
        publisher.join(5.0)
        if self._failed:
            raise RuntimeError("the publisher failed")

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
            more = self._projection.step()
            if time.monotonic() - said >= STATUS_SECONDS:
                said = time.monotonic()
                self._report("projection", self._projection.progress.status(self._clock.now_ms()))
            if not more:
                time.sleep(LOOK_SECONDS)

    def _keep_for_ever(self) -> None:
        looked = said = protected = float("-inf")
        try:
            while not self._stop:
                now = time.monotonic()
                if self._hurry or now - looked >= KEEP_SECONDS:
                    looked, hurry, self._hurry = now, self._hurry, False
                    if self._publisher.step(now=hurry) or hurry or now - said >= STATUS_SECONDS:
                        said = now
                        self._report("publisher", self._publisher.status())
                    if now - protected >= PROTECT_SECONDS:
                        protected = now
                        self._publisher.protect()
                time.sleep(LOOK_SECONDS)
        except BaseException:
            log.exception("the publisher failed")
            self._failed = self._stop = True

    def _report(self, name: str, status: PublisherStatus | ProjectionStatus) -> None:
        try:
            self._say(name, status)
        except OSError as error:
            log.warning("status of the %s cannot be written: %s", name, error.strerror)
