"""Kubernetes Events on Nodes: each time that a condition of a machine becomes another, the sentence that the command
line and the API have, where `kubectl describe node` shows it.

What comes again within minutes is one event with a count. What cannot be written is tried again, up to a number.
"""

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from netboot.controllers.nodes.judged import Found
from netboot.join.errors import ConflictError
from netboot.join.node_events import NodeEvent, NodeEvents
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.remedies import Remedy
from netboot.logs import Trouble
from netboot.status import DEFECT

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
SERIES_SECONDS = 360.0
"""How long an event is counted on, as client-go does (k8s.io/client-go/tools/events: finishTime)."""
MOST_WAITING = 2_000
"""Events that wait to be written; of more the oldest go."""
MOST_TRIES = 60
"""Of one event; whatever hinders it hinders the others no longer than some minutes."""
MOST_SERIES = 20_000
AT_ONCE = 50


@dataclass(slots=True)
class _Series:
    name: str
    times: int
    until: float


@dataclass(slots=True)
class Teller:
    """`connect()`, `found()`, `nodes()`: machine → its Node's name and uid; `now_ms()`: the time of day; `taken()`: the
    remedies that were taken since it was asked last; `leads()`: whether this replica does, which alone writes;
    `another()`: whether it is known that another one does, which then tells it."""

    connect: Callable[[], NodeEvents]
    found: Callable[[], Found | None]
    nodes: Callable[[], Mapping[str, tuple[str, str]]]
    now_ms: Callable[[], int]
    taken: Callable[[], Sequence[Remedy]] = list
    monotonic: Callable[[], float] = time.monotonic
    leads: Callable[[], bool] = lambda: True
    another: Callable[[], bool] = lambda: False
    _seen: Found | None = None
    _events: NodeEvents | None = None
    _tries: int = 0
    """Of the first that waits."""
    _waiting: deque[NodeEvent] = field(default_factory=lambda: deque(maxlen=MOST_WAITING))
    _series: OrderedDict[tuple[str, str, str, str], _Series] = field(default_factory=OrderedDict)
    _trouble: Trouble = field(default_factory=lambda: Trouble(log, "events", "events: written again", logging.WARNING))

    def start(self) -> None:
        """Begin; the thread ends with the process."""
        threading.Thread(target=self._for_ever, name="events", daemon=True).start()

    def step(self) -> None:
        """Find what became another, and write some of what waits.

        Raises:
            CannotTellError: it is tried again.
        """
        found = self.found()
        if found is not None and found is not self._seen:
            before, self._seen = self._seen, found
            if before is not None:  # what is so already when the service starts is nobody's news
                news = self._news(before, found)
                if lost := max(0, len(self._waiting) + len(news) - MOST_WAITING):
                    log.error("%d events are not written, the oldest: more than %d wait", lost, MOST_WAITING)
                self._waiting.extend(news)
        if not self.leads():
            if self.another():
                self._waiting.clear()
                self.taken()
            return
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._tries += 1
            if self._tries <= MOST_TRIES:
                self._write(self._waiting[0])
            else:
                log.error("not written as an event, after %d tries: %s", MOST_TRIES, self._waiting[0].note)
            self._waiting.popleft()
            self._tries = 0
        self._waiting.extend(self._remedied())  # last: what cannot be read there hinders no other event

    def _news(self, before: Found, found: Found) -> list[NodeEvent]:
        nodes, now_ms = self.nodes(), self.now_ms()
        return [
            NodeEvent(*nodes[machine], now.type, now.status, now.reason, now.message, now_ms)
            for machine, conditions in found.items()
            if machine in nodes and machine in before
            for now, old in zip(conditions, before[machine], strict=False)
            if (now.status, now.reason) != (old.status, old.reason)
        ]

    def _remedied(self) -> list[NodeEvent]:
        return [
            NodeEvent(
                *where, "Remedy", "False", each.what.capitalize(), f"remedy {each.id}: {each.message}", each.at_ms
            )
            for each in self.taken()
            if (where := self.nodes().get(each.machine)) is not None
        ]

    def _write(self, event: NodeEvent) -> None:
        if self._events is None:
            self._events = self.connect()
        now = self.monotonic()
        known = self._series.get(event.same)
        try:
            if known is not None and known.until > now:
                self._events.count(known.name, known.times + 1, event.at_ms)
                self._keep(event, _Series(known.name, known.times + 1, now + SERIES_SECONDS))
                return
        except ConflictError:
            pass  # the apiserver keeps events for an hour, and somebody may delete one
        self._keep(event, _Series(self._events.create(event), 1, now + SERIES_SECONDS))

    def _keep(self, event: NodeEvent, series: _Series) -> None:
        self._series[event.same] = series
        self._series.move_to_end(event.same)
        if len(self._series) > MOST_SERIES:
            self._series.popitem(last=False)

    def _for_ever(self) -> None:
        pause = threading.Event()
        while not pause.wait(LOOK_SECONDS):
            try:
                self.step()
                self._trouble.note(None)
            except CannotTellError as error:
                self._trouble.note(str(error))
                pause.wait(5.0)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look is tried
                self._trouble.note(DEFECT, error)
                pause.wait(5.0)
