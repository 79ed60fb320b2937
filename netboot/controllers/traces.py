"""The process `traces`: each boot that has ended is exported once, as a trace, to a collector outside.

Nobody waits for it: it reads what others have written, and what the collector does not take waits in a bounded queue,
of which the oldest goes and is counted.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from images.values.backoff import Backoff
from images.values.strict import Strict
from netboot.lifecycle.boot_spans import BootTrace, RejectedError
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.ports import Clock
from netboot.logs import Trouble
from netboot.status import DEFECT
from netboot.status.traces import TracesStatus

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
STOP_SECONDS = 2.0
KEEP_SECONDS = 2.0
"""Between two times that it is written down what is under way."""
PAGE = 500
MOST_PAGES = 20
"""Entries of the feed in one turn."""
MOST_LOOKED_AT = 100
"""Boots in one turn: each costs some 0.3 ms."""
MOST_OPEN = 50_000
MOST_WAITING = 2_000
"""Boots that wait for the collector; each has some 5 kB."""
BATCH = 50
TROUBLE_SECONDS = 30.0
"""Before a boot is looked at again that could not be read."""
AGAIN = Backoff(first=1.0, longest=60.0)
STUCK_SECONDS = 180.0
"""Without an answer, or an end of a turn: longer than a collector that answers within its deadline can take."""


class Position(Strict):
    """Written down: up to where the feed was read, and boots that are not exported yet."""

    feed: int
    boots: tuple[str, ...] = ()


class Boots(Protocol):
    """What boots do. Both methods raise CannotTellError."""

    def started(self, after: int | None, limit: int) -> tuple[int, int, dict[str, float | None]]:
        """What came after that place of the feed: the place up to where this goes, how many entries, and the boots that
        anything was reported or seen of, each with in how many seconds it may have ended; None: that is not known. No
        place: from now on."""
        ...

    def ended(self, boot: str) -> tuple[BootTrace | None, float | None]:
        """The trace of a boot that has ended; else in how many seconds to look again; neither: it is known no more."""
        ...


class Collector(Protocol):
    """Where traces go."""

    @property
    def where(self) -> str:
        """As messages name it."""
        ...

    def export(self, boots: Sequence[BootTrace]) -> None:
        """Hand these over.

        Raises:
            CannotTellError: not now. RejectedError: never.
        """
        ...


@dataclass(slots=True)
class _Counts:
    exported: int = 0
    dropped: int = 0
    failed: int = 0


class TracesController:
    """In a thread of its own. `kept`: what was written down before; `keep` writes it down, and says if it could."""

    def __init__(
        self,
        boots: Boots,
        collector: Collector,
        kept: Position | None,
        keep: Callable[[Position], bool],
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._boots, self._collector, self._keep = boots, collector, keep
        self._clock, self._monotonic = clock, monotonic
        self._feed = kept.feed if kept is not None else None
        self._open: dict[str, float] = dict.fromkeys(kept.boots if kept is not None else (), 0.0)
        """Boot → when it is looked at next."""
        self._waiting: deque[BootTrace] = deque()
        self._counts, self._problem = _Counts(), ""
        self._failures, self._again_at, self._why = 0, 0.0, ""
        self._kept, self._kept_at = kept, float("-inf")
        self._moved_at = monotonic()
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
        where = collector.where
        self._trouble = Trouble(log, f"traces do not go to {where}", f"traces go to {where} again")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(STOP_SECONDS)

    def step(self) -> None:
        """See what there is, and hand over what has ended."""
        problem, defect = "", None
        for part in (self._follow, self._look, self._send):  # what cannot be read keeps nothing back that was read
            try:
                part()
            except CannotTellError as error:
                problem, defect = str(error), None
            except Exception as error:  # noqa: BLE001 - said with its traceback; nobody waits for traces
                problem, defect = DEFECT, error
        self._trouble.note(problem or None, defect)
        with self._lock:
            self._problem, self._moved_at = problem, self._monotonic()
        self._remember()

    def status(self) -> TracesStatus:
        """For `/readyz` and metrics."""
        with self._lock:
            problem, counts, waiting, open_ = self._said(), self._counts, len(self._waiting), len(self._open)
            return TracesStatus(
                at_ms=self._clock.now_ms(),
                ok=not problem,
                message=f"traces do not go to {self._collector.where}: {problem}" if problem else "in order",
                remedy="see `traces` of netboot.yaml, and the collector; boots go on without it",
                waiting=waiting,
                open=open_,
                exported=counts.exported,
                dropped=counts.dropped,
                failed=counts.failed,
            )

    def _said(self) -> str:
        still = self._monotonic() - self._moved_at
        return f"nothing has moved for {int(still)} s" if still > STUCK_SECONDS else self._problem

    def _follow(self) -> None:
        for _ in range(MOST_PAGES):
            place, entries, boots = self._boots.started(self._feed, PAGE)
            now = self._monotonic()
            with self._lock:
                self._feed = place
                for boot, seconds in boots.items():
                    at, known = now + (seconds or 0.0), self._open.get(boot)
                    if known is None or (seconds is not None and at < known):
                        self._open[boot] = at
                while len(self._open) > MOST_OPEN:
                    self._open.pop(next(iter(self._open)))
                    self._counts.dropped += 1
            if entries < PAGE:
                return

    def _look(self) -> None:
        now = self._monotonic()
        due = [boot for boot, at in self._open.items() if at <= now][:MOST_LOOKED_AT]
        for boot in due:
            try:
                trace, again = self._boots.ended(boot)
            except Exception:
                with self._lock:  # the others go on, and this one is tried again behind them
                    self._open.pop(boot)
                    self._open[boot] = now + TROUBLE_SECONDS
                raise
            with self._lock:
                self._open.pop(boot)
                if trace is not None:
                    self._waiting.append(trace)
                elif again is not None:
                    self._open[boot] = now + again
                else:
                    self._counts.dropped += 1
                while len(self._waiting) > MOST_WAITING:
                    self._waiting.popleft()
                    self._counts.dropped += 1

    def _send(self) -> None:
        while self._waiting and not self._stopping.is_set():
            if self._monotonic() < self._again_at:
                raise CannotTellError(self._why)
            batch = list(self._waiting)[:BATCH]
            try:
                self._collector.export(batch)
            except RejectedError as error:
                log.warning("%d boots are not exported: %s", len(batch), error)
                self._settle(len(batch), rejected=True)
            except CannotTellError as error:
                self._failures, self._why = self._failures + 1, str(error)
                self._again_at = self._monotonic() + AGAIN.seconds(self._failures)
                with self._lock:
                    self._counts.failed += 1
                raise
            except Exception:
                self._settle(len(batch), rejected=True)  # what nobody foresaw of these keeps no others back
                raise
            else:
                self._settle(len(batch), rejected=False)

    def _settle(self, number: int, *, rejected: bool) -> None:
        self._failures, self._again_at = 0, 0.0
        with self._lock:
            for _ in range(number):
                self._waiting.popleft()
            self._counts.dropped += number if rejected else 0
            self._counts.exported += 0 if rejected else number
            self._moved_at = self._monotonic()

    def _remember(self, *, last: bool = False) -> None:
        """What is lost of it is exported twice, as the same trace, or not at all: no boot is worth an fsync."""
        now = self._monotonic()
        if self._feed is None or (now - self._kept_at < KEEP_SECONDS and not last):
            return
        position = Position(feed=self._feed, boots=(*(each.boot for each in self._waiting), *self._open))
        if position != self._kept:
            self._kept = position if self._keep(position) else None
        self._kept_at = now

    def _work(self) -> None:
        while not self._stopping.is_set():
            self.step()
            self._stopping.wait(LOOK_SECONDS)
        self._remember(last=True)
