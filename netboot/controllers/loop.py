"""The controllers' process: the projection in the main thread, publisher, lifecycle and rollouts in others. No failure
of one ends another: it is logged, that loop says of itself that it has met a defect, and goes on after a pause. To end
the process instead would stop all for as long as the cause stays, and journals would fill up.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol

from netboot.controllers.pieces import Going, unheard
from netboot.controllers.projection import ProjectionController
from netboot.controllers.snapshot_publisher import SnapshotPublisher
from netboot.lifecycle.ports import Clock
from netboot.logs import Trouble
from netboot.status import DEFECT, up_ms
from netboot.status.controllers import LifecycleStatus, LoopStatus, RolloutsStatus

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
KEEP_SECONDS = 0.4
STATUS_SECONDS = 1.0
PROTECT_SECONDS = 20.0
JUDGE_SECONDS = 0.5
"""Between two looks of the lifecycle, where nobody waits to be judged."""
ROLL_SECONDS = 1.0
"""Between two looks at rollouts."""
REST_SECONDS = 5.0
"""How long a loop rests that failed for a reason that nobody foresaw."""

Say = Callable[[str, LoopStatus], object]


class Beats(NamedTuple):
    """What each loop calls every time that it goes round, so that a frozen one is noticed."""

    publisher: Callable[[], None]
    projection: Callable[[], None]
    lifecycle: Callable[[], None]
    rollouts: Callable[[], None]


class Lifecycle(Protocol):
    """Judges machines, and writes down what is to be kept of that."""

    def step(self, going: Going = unheard) -> bool:
        """Some of it; whether there is more to do at once. `going` is called now and then."""
        ...

    def status(self) -> LifecycleStatus:
        """For `/readyz` and metrics."""
        ...


class Rollouts(Protocol):
    """Drives rollouts, and ends orders that were carried out."""

    def step(self) -> None:
        """Look at all."""
        ...

    def status(self) -> RolloutsStatus:
        """For `/readyz` and metrics."""
        ...


class Controllers:
    """The four loops. `say(name, status)` publishes what one of them says of itself.

    Signal handlers only set plain flags: an Event's lock may be held by the very thread that is interrupted.
    """

    def __init__(
        self,
        publisher: SnapshotPublisher,
        projection: ProjectionController,
        lifecycle: Lifecycle,
        rollouts: Rollouts,
        say: Say,
        clock: Clock,
    ) -> None:
        self._publisher, self._projection, self._lifecycle = publisher, projection, lifecycle
        self._rollouts = rollouts
        self._say, self._clock = say, clock
        self._stop = self._hurry = False
        self._status: dict[str, Callable[[], LoopStatus]] = {
            "publisher": publisher.status,
            "projection": lambda: projection.progress.status(clock.now_ms()),
            "lifecycle": lifecycle.status,
            "rollouts": rollouts.status,
        }
        self._defects = {
            name: Trouble(log, f"the {name} failed; it is tried again", f"the {name} works again", logging.ERROR)
            for name in self._status
        }
        self._said: dict[str, LoopStatus] = {}
        """What each loop said last."""
        self._reported = self._protected = float("-inf")
        """When the publisher's loop last did."""

    def run(self, ready: Callable[[], None], beats: Beats) -> None:
        """Until SIGTERM or SIGINT; then take over what is journalled, and return. SIGHUP: read everything again now."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._heed)
        self._attempt("publisher", lambda: self._publisher.step(now=True))
        beats.publisher()
        ready()
        publisher = threading.Thread(target=self._keep_for_ever, args=(beats.publisher,), name="publisher", daemon=True)
        lifecycle = threading.Thread(
            target=self._judge_for_ever, args=(beats.lifecycle,), name="lifecycle", daemon=True
        )
        rollouts = threading.Thread(target=self._roll_for_ever, args=(beats.rollouts,), name="rollouts", daemon=True)
        publisher.start()
        lifecycle.start()
        rollouts.start()
        self._project_for_ever(beats.projection)
        self._projection.finish()
        publisher.join(5.0)
        lifecycle.join(5.0)
        rollouts.join(5.0)

    def _heed(self, number: int, _frame: object) -> None:
        if number == signal.SIGHUP:
            self._hurry = True
        else:
            self._stop = True

    def _project_for_ever(self, beat: Callable[[], None]) -> None:
        """Machines first: in a storm the workers get the processors, and bookkeeping what they leave (sched(7)); the
        journals keep its facts until it catches up. Of this thread alone: a new inventory must not wait for that. It
        gets a three-hundredth of a busy processor: so it is heard between batches, and these are small when slow.
        """
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while not self._stop:
            if not self._attempt("projection", lambda: self._project(beat)):
                self._rest(beat)

    def _judge_for_ever(self, beat: Callable[[], None]) -> None:
        """At the same low priority, and at most half of the time: the projection wants the other half."""
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        reported, more, well = float("-inf"), False, True

        def going() -> None:
            nonlocal reported
            beat()
            if time.monotonic() - reported >= STATUS_SECONDS and well:
                reported = time.monotonic()
                self._report("lifecycle", self._status["lifecycle"]())

        def judge() -> None:
            nonlocal more
            more = self._lifecycle.step(going)
            going()

        while not self._stop:
            beat()
            worked = time.thread_time()
            well = self._attempt("lifecycle", judge)
            if not well:
                self._rest(beat)
            else:
                # as long as it computed, not as long as others had the processor: it is to be heard again soon
                time.sleep(time.thread_time() - worked if more else JUDGE_SECONDS)

    def _roll_for_ever(self, beat: Callable[[], None]) -> None:
        """At the same low priority, and at most half of the time."""
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while not self._stop:
            beat()
            began = time.thread_time()
            if self._attempt("rollouts", self._rollouts.step):
                self._report("rollouts", self._status["rollouts"]())
                self._rest(beat, max(ROLL_SECONDS, time.thread_time() - began))
            else:
                self._rest(beat)

    def _project(self, beat: Callable[[], None]) -> None:
        reported = float("-inf")

        def going() -> None:
            nonlocal reported
            beat()
            if time.monotonic() - reported >= STATUS_SECONDS:
                reported = time.monotonic()
                self._report("projection", self._status["projection"]())

        while not self._stop:
            more = self._projection.step(going)
            self._defects["projection"].note(None)
            if not more:
                time.sleep(LOOK_SECONDS)

    def _keep_for_ever(self, beat: Callable[[], None]) -> None:
        looked = float("-inf")
        while not self._stop:
            beat()
            if self._hurry or time.monotonic() - looked >= KEEP_SECONDS:
                looked = time.monotonic()
                if not self._attempt("publisher", partial(self._keep, beat)):
                    self._rest(beat)
            time.sleep(LOOK_SECONDS)

    def _keep(self, beat: Callable[[], None]) -> None:
        now, hurry, self._hurry = time.monotonic(), self._hurry, False
        published = self._publisher.step(now=hurry)
        if now - self._protected >= PROTECT_SECONDS:
            beat()
            self._publisher.protect()
            self._protected = now
        if published or hurry or now - self._reported >= STATUS_SECONDS:
            self._reported = now
            beat()
            self._report("publisher", self._status["publisher"]())

    def _attempt(self, name: str, step: Callable[[], object]) -> bool:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends this round only
            self._defects[name].note(repr(error), error)
            self._report_defect(name)
            return False
        self._defects[name].note(None)
        return True

    def _report_defect(self, name: str) -> None:
        """At once. Where there was nothing said before, nor can be now, `/readyz` says that."""
        with suppress(Exception):  # where the defect is in saying it
            self._said[name] = self._status[name]()
        if name in self._said:
            now = {"at_ms": self._clock.now_ms(), "up_ms": up_ms()}
            self._report(name, self._said[name].model_copy(update={"problem": DEFECT, **now}))

    def _rest(self, beat: Callable[[], None], seconds: float | None = None) -> None:
        until = time.monotonic() + (REST_SECONDS if seconds is None else seconds)
        while time.monotonic() < until and not self._stop:
            beat()
            time.sleep(LOOK_SECONDS)

    def _report(self, name: str, status: LoopStatus) -> None:
        self._said[name] = status
        self._say(name, status)
