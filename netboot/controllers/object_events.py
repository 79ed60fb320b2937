"""Events about objects of machines, as they wait: what comes again within minutes is one event with a count."""

import logging
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from images.values.backoff import Backoff
from netboot.join.errors import ConflictError, InvalidError
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.object_events import ObjectEvent

log = logging.getLogger(__name__)

SERIES_SECONDS = 360.0
"""How long an event is counted on, as client-go does (k8s.io/client-go/tools/events: finishTime)."""
MOST_WAITING = 2_000
"""Events that wait to be written; of more the oldest go."""
MOST_SERIES = 20_000
MOST_TRIES = 20
"""Of one event; whatever hinders it hinders the others no longer than some minutes."""
AGAIN = Backoff(first=1.0, longest=30.0)


class Events(Protocol):
    """Where they go: `netboot.kube.machine_objects`. Both raise ClusterUnavailableError."""

    def tell(self, event: ObjectEvent) -> str:
        """A new one; its name. Raises InvalidError: this one is not taken."""
        ...

    def tell_again(self, name: str, times: int, at_ms: int) -> None:
        """It came again, so many times in all. Raises ConflictError: it is gone."""
        ...


@dataclass(slots=True)
class _Series:
    name: str
    times: int
    until: float


@dataclass(slots=True)
class EventQueue:
    """For one thread. `dropped`: those that were not written, for too many waited, or they were tried too often;
    `problem`: why the first of them waits, "": it does not."""

    dropped: int = 0
    problem: str = ""
    _tries: int = 0
    """Of the first."""
    _again_at: float = 0.0
    _waiting: deque[ObjectEvent] = field(default_factory=deque)
    _series: OrderedDict[tuple[str, str], _Series] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, events: Iterable[ObjectEvent]) -> None:
        """These are to be written."""
        self._waiting.extend(events)
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self.dropped += 1

    def may(self, now: float) -> bool:
        """Whether there is one that may be written now."""
        return bool(self._waiting) and now >= self._again_at

    def write(self, events: Events, now: float) -> bool:
        """The first of them, or try; whether there is an answer to it."""
        answered = True
        try:
            self._write(events, self._waiting[0], now)
        except InvalidError as error:
            self.problem = f"Events: {error}"
            log.warning("not taken as an Event: %s: %s", self._waiting[0].note, error)
            self.dropped += 1
        except CannotTellError as error:
            answered = False
            self._tries += 1
            self.problem, self._again_at = f"Events: {error}", now + AGAIN.seconds(self._tries)
            if self._tries < MOST_TRIES:
                return False
            log.warning("not written as an Event, after %d tries: %s", self._tries, self._waiting[0].note)
            self.dropped += 1
        else:
            self.problem = ""
        self._waiting.popleft()
        self._tries = 0
        return answered

    def _write(self, events: Events, event: ObjectEvent, now: float) -> None:
        series = self._series.get(event.same)
        if series is None or now >= series.until or not _counted(events, series, event):
            series = _Series(events.tell(event), 1, 0.0)
        series.until = now + SERIES_SECONDS
        self._series[event.same] = series
        self._series.move_to_end(event.same)
        if len(self._series) > MOST_SERIES:
            self._series.popitem(last=False)


def _counted(events: Events, series: _Series, event: ObjectEvent) -> bool:
    try:
        events.tell_again(series.name, series.times + 1, event.at_ms)
    except ConflictError:
        return False
    series.times += 1
    return True
