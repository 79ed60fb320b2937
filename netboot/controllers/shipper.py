"""The process `shipper`: objects of machines say how their machines are.

What an object says is held against what is known, again and again: nothing waits in a queue of its own, so a process
that was started again, an API server that was away and a status that somebody wiped are one case. What waits is
written from what is known by then, which is less than all that happened.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator

from images.values.backoff import Backoff
from netboot.controllers.differences import Differences
from netboot.controllers.known_until import KnownUntil
from netboot.controllers.object_events import EventQueue
from netboot.controllers.overwritten import DROPPED
from netboot.controllers.reflector import Reflector
from netboot.controllers.refusals import FORESEEN, said
from netboot.controllers.several import Several
from netboot.controllers.shipped import REMEDY, Due, Known, Objects
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.object_events import ObjectEvent, news
from netboot.lifecycle.object_status import status_in
from netboot.lifecycle.objects import MachineObject, Seen
from netboot.lifecycle.pacing import MOST_A_SECOND, Rate
from netboot.lifecycle.ports import Clock
from netboot.logs import Trouble
from netboot.status import DEFECT
from netboot.status.resources import ShipperStatus

log = logging.getLogger(__name__)

ROUND_SECONDS = 600.0
"""After about so long all are listed and looked at anew."""
LOOK_SECONDS = 0.5
MOST_LOOKED_AT = 100
"""In one turn: each costs about a millisecond."""
LATE_SECONDS = 120.0
"""Who is behind for longer is said: what waits a minute by design is written by then."""
AGAIN = Backoff(first=1.0, longest=30.0)
STUCK_SECONDS = 60.0
"""Without an end of a turn."""


class ShipperController:
    """A thread that watches, and one that writes."""

    def __init__(
        self,
        known: Known,
        connect: Callable[[], Objects],
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
        several: Several | None = None,
    ) -> None:
        """`connect`: to the API server, again until it can be done. `several`: None: this replica is the only one."""
        self._known, self._connect, self._several = known, connect, several or Several()
        self._clock, self._monotonic = clock, monotonic
        self._differences, self._events = Differences(self._several.ours, clock.now_ms), EventQueue()
        self._rate = Rate(monotonic(), most=MOST_A_SECOND / self._several.count)
        self._until = KnownUntil(known, clock)
        self._failures, self._again_at, self._why = 0, float("-inf"), ""
        self._looked_at = float("-inf")
        self._written = self._failed = 0
        self._most = MOST_LOOKED_AT
        self._problem, self._moved_at = "", monotonic()
        self._api: Objects | None = None
        self._lock, self._stopping = threading.Lock(), threading.Event()
        seconds = ROUND_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311 - spreads lists
        self._reflector = Reflector("objects of machines", self._watch, self.take, seconds)
        self._threads = [threading.Thread(target=self._reflector.run, daemon=True)]
        self._threads.append(threading.Thread(target=self._work, name="shipper", daemon=True))
        self._trouble = Trouble(log, "objects of machines may not say how they are", "objects say how machines are")

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._reflector.stop()

    def _watch(self, seconds: float) -> Iterator[Seen]:
        if self._api is None:
            self._api = self._connect()
        return self._api.watch(seconds)

    def take(self, seen: Seen) -> None:
        """What the API server said."""
        with self._lock:
            self._differences.take(seen, self._monotonic())

    def step(self) -> float:
        """See what is another, and write what may be written now; seconds until there may be more to do."""
        problem, defect = "", None
        for part in (self._look, self._weigh, self._write, self._renew):
            try:
                part()
            except CannotTellError as error:
                problem, defect = str(error), None
            except Exception as error:  # noqa: BLE001 - said with its traceback; nobody waits for this
                problem, defect = DEFECT, error
        self._trouble.note(problem or None, defect)
        now = self._monotonic()
        with self._lock:
            self._problem, self._moved_at = problem, now
            more = now >= self._again_at and self._differences.next(now) is not None
            more = more or self._events.may(now)
            return min(LOOK_SECONDS, self._rate.wait()) if more and not problem else LOOK_SECONDS

    def _look(self) -> None:
        now = self._monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        changed = self._known.changed()
        with self._lock:
            self._differences.look_for(None if self._led() else changed, now)

    def _led(self) -> bool:
        """Whether this replica leads since now, or does no more: what is due is another thing."""
        led, self._differences.leads = self._differences.leads, self._several.leads()
        return led != self._differences.leads

    def _weigh(self) -> None:
        with self._lock:
            some = self._differences.some(self._most)
            objects = self._differences.objects(some)
        try:
            facts = self._several.learn(self._known.facts(list(some)), objects) if some else {}
        except Exception:
            self._most = max(1, self._most // 2)  # one that cannot be read keeps no others back
            with self._lock:
                self._differences.put_back(some)
            raise
        self._most = min(MOST_LOOKED_AT, 2 * self._most)
        with self._lock:
            self._differences.found(some, facts, objects)

    def _write(self) -> None:
        while not self._stopping.is_set():
            now = self._monotonic()
            with self._lock:
                found = self._differences.next(now) if now >= self._again_at else None
                waits = self._failures > 0 and self._differences.behind(now)[0] > 0
            if found is None and self._events.may(now) and self._rate.take(now):
                assert self._api is not None
                told = self._events.write(self._api, now)  # where no status may be written now
                self._rate.answered(self._monotonic() - now) if told else self._rate.failed()
            elif found is not None and self._rate.take(now):
                self._write_to(*found, now)
            elif waits:
                raise CannotTellError(self._why)
            else:
                return

    def _write_to(self, machine: MachineObject, due: Due, now: float) -> None:
        assert self._api is not None
        with self._lock:
            self._differences.writes(machine)
        try:
            after = self._api.write(machine, due.document)
        except CannotTellError as error:
            self._why = str(error)
            self._failures, self._failed = self._failures + 1, self._failed + 1
            self._rate.failed()
            self._again_at = self._monotonic() + AGAIN.seconds(self._failures)
            with self._lock:
                if self._differences.failed(machine):
                    self._differences.refusals.unanswered(machine.name, self._again_at, AGAIN)
            raise
        except Exception as error:  # noqa: BLE001 - of this one alone: it is said, and others go on
            if isinstance(error, FORESEEN):
                self._answered(now)
            else:
                self._rate.failed()
            self._failed += 1
            with self._lock:
                self._differences.refused(machine, error, now)
            return
        self._answered(now)
        self._written += 1
        with self._lock:
            another = self._differences.wrote(machine, due, after, now)
        if another:
            told, at_ms = news(status_in(machine.status), due.status), self._clock.now_ms()
            about = machine.name, machine.uid
            self._events.add(ObjectEvent(*about, each.reason, each.note, each.good, at_ms) for each in told)

    def _answered(self, now: float) -> None:
        self._rate.answered(self._monotonic() - now)
        self._failures = 0

    def _renew(self) -> None:
        now = self._monotonic()
        if self._api is None or now < self._again_at or not self._differences.leads or not self._until.may(now):
            return
        with self._lock:
            lag = self._differences.behind(now)[1] if self._differences.listed else float("inf")
        if not self._reflector.problem and lag <= LATE_SECONDS and self._rate.take(now):
            self._until.renew(self._api, now)

    def status(self) -> ShipperStatus:
        """For `/readyz` and metrics."""
        now = self._monotonic()
        with self._lock:
            behind, lag = self._differences.behind(now)
            problem = self._said(now, lag)
            return ShipperStatus(
                at_ms=self._clock.now_ms(),
                ok=not problem,
                message=problem or "objects of machines say what is known",
                remedy=REMEDY,
                objects=len(self._differences),
                behind=behind,
                lag_seconds=lag if self._differences.listed else None,
                a_second=self._rate.a_second,
                written=self._written,
                events_waiting=len(self._events),
                events_dropped=self._events.dropped,
                failed=self._failed,
                refused=len(self._differences.refusals.told()),
                overwritten=len(self._differences.overwritten.told(now)),
                followed=self._differences.listed and not self._reflector.problem,
            )

    def _said(self, now: float, lag: float) -> str:
        """What is wrong."""
        still = now - self._moved_at
        if still > STUCK_SECONDS:
            return f"nothing has moved for {int(still)} s"
        why = self._reflector.problem or self._problem or self._events.problem or self._until.problem
        refused = said(self._differences.refusals.told(), "is refused")
        overwritten = said(self._differences.overwritten.told(now), "is overwritten")
        dropped = said(dict.fromkeys(self._differences.dropped, DROPPED), "lacks what boots are told by, because of")
        why = "; ".join(filter(None, (why, self._several.problem, refused, overwritten, dropped)))
        if lag <= LATE_SECONDS:
            return why
        behind = f"objects of machines are behind for {lag:.0f} s"
        return f"{behind}: {why}" if why else behind

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._stopping.wait(self.step())
