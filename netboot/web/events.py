"""`/v1/machines/<name>/events[/watch]`: what happened to a machine, from wherever that is kept, as one timeline.

Phases, failures and crashes of its boots; changes of its conditions, and so of its health; what operators did about its
identity; alerts. Moments are those of whoever found it, by this host's clock.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter, not_
from typing import Annotated, Any, NamedTuple

from flask import Response
from pydantic import Field

from images.values.strict import Strict
from netboot.join.enrolment import Alert, Entry
from netboot.lifecycle.errors import BadClaimError
from netboot.lifecycle.history import TRANSITIONS_KEPT, Transition
from netboot.lifecycle.state import FeedEntry
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.views import machine_named
from netboot.web.binding import Shown
from netboot.web.dependencies import Dependencies, dependencies
from netboot.web.inputs import Whole
from netboot.web.pages import PageAsked, Paged, latest
from netboot.web.tried import Tried
from netboot.web.watch import PAGE, Look, last_id, stream

MOST = 1_000
BOOTS = 50
"""Boots whose phases are in the timeline."""
LOST = "changes of conditions may be missing: their history was lost, or an older copy was restored"


class Event(Shown):
    """`what` of that `kind`: `phase`, `crash`, `condition`, `enrolment`, `alert`; `gap`: something may be missing
    before this. A phase or crash has `boot` and, where its machine said it, `uptime_ms`; a condition `status` and
    `reason`; an alert `count`."""

    at_ms: int
    kind: str
    what: str
    said_by: str
    detail: str
    boot: str = Field("", exclude_if=not_)
    uptime_ms: int | None = None
    status: str = Field("", exclude_if=not_)
    reason: str = Field("", exclude_if=not_)
    count: int = Field(0, exclude_if=not_)


class EventsAsked(PageAsked):
    """How many; `continue`: those before."""

    limit: Annotated[int, Whole(1, MOST)] = 100


class WatchAsked(Strict):
    """From where: what an earlier answer gave as `since`; without it from now on."""

    since: str | None = None


class Events(Paged):
    """The latest, in order; `continue`: for those before them. `since`: from where to watch without a gap; `problems`:
    what cannot be read now, so that it is not in there."""

    events: tuple[Event, ...]
    since: str
    problems: tuple[str, ...]


def listed(name: str, query: EventsAsked) -> Events:
    """The latest of a machine's timeline, in order."""
    deps, limit = dependencies(), query.limit
    deep = limit + 1 if query.after is None else MOST
    machine_named(deps.live.view(), name)
    tried = Tried()
    since = Place.now(
        deps, name, tried
    )  # before the rest is read: what comes meanwhile is told twice, never not at all
    found = [event for trace in tried.read(lambda: deps.states.boots(name, BOOTS)) for event in _of_trace(trace)]
    found += map(_of_transition, tried.read(lambda: deps.history.transitions(name, None, deep)))
    found += map(_of_entry, tried.read(lambda: deps.register.store.history(name, deep)))
    found += map(_of_alert, tried.read(lambda: deps.register.store.alerts(name)))
    found.sort(key=attrgetter("at_ms"))
    part, more = latest(query.after, limit, found, attrgetter("at_ms"))
    return Events(events=tuple(part), since=str(since), problems=tuple(sorted(tried.problems)), next_page=more)


def watched(name: str, query: WatchAsked) -> Response:
    """Lines `{"event": {…}}` and heartbeats, as of boots; without `since` from now on."""
    deps, text = dependencies(), last_id() or query.since
    machine_named(deps.live.view(), name)
    place = Place.now(deps, name, Tried()) if text is None else Place.parse(text)
    return stream(deps, _Timeline(deps, name, place))


class Place(NamedTuple):
    """How far a timeline was read: ids of the feed, of transitions, of enrolment's history; alerts' last moment. None:
    from where it is when that can be read again."""

    feed: int | None
    transition: int | None
    entry: int | None
    alert_ms: int | None

    def __str__(self) -> str:
        return ".".join("-" if each is None else str(each) for each in self)

    @classmethod
    def parse(cls, text: str) -> "Place":
        """What was given out as `since`.

        Raises:
            BadClaimError: it was not.
        """
        parts = text.split(".")
        known = all(part == "-" or (part.isdecimal() and len(part) < 19) for part in parts)
        if len(parts) != len(cls._fields) or not known:
            raise BadClaimError("since must be what an earlier answer gave as `since`")
        return cls(*(None if part == "-" else int(part) for part in parts))

    @classmethod
    def now(cls, deps: Dependencies, name: str, tried: Tried) -> "Place":
        """Behind everything that is there."""
        store = deps.register.store
        return cls(
            tried.newest(lambda: max((entry.id for entry in deps.sightings.feed(None, 1)), default=0)),
            tried.newest(lambda: max((each.id for each in deps.history.transitions(None, None, 1)), default=0)),
            tried.newest(lambda: max((entry.id for entry in store.history(name, 1)), default=0)),
            tried.newest(lambda: max((alert.last_ms for alert in store.alerts(name)), default=0)),
        )


class _Timeline:
    """A machine's, from that place on."""

    def __init__(self, deps: Dependencies, name: str, place: Place) -> None:
        self._deps, self._name, self._place = deps, name, place
        self._look, self.problem, self.gap = Look(deps), "", ""

    @property
    def since(self) -> str:
        return str(self._place)

    def more(self) -> tuple[list[Event], bool]:
        """What came to any of the places where it is kept, in the order of moments."""
        deps, name, tried, before = self._deps, self._name, Tried(), self._place
        now = Place.now(deps, name, tried) if None in before else before
        place = Place(*(one if one is not None else other for one, other in zip(before, now, strict=True)))
        missed, place = tried.newest(lambda: self._looked_at(place)) or ("", place)
        feed = tried.read(lambda: deps.sightings.feed(place.feed, PAGE) if place.feed is not None else [])
        changes = tried.newest(lambda: _changes(deps, name, place.transition)) or _Changes([], place.transition)
        entries, alerts = list[Entry](), list[Alert]()
        if (entry := place.entry) is not None:
            found = tried.read(lambda: deps.register.store.history(name, PAGE))
            entries = [each for each in found if each.id > entry]
        if (alert_ms := place.alert_ms) is not None:
            entries_of = tried.read(lambda: deps.register.store.alerts(name))
            alerts = [each for each in entries_of if each.last_ms > alert_ms]
        self._place = Place(
            max((each.id for each in feed), default=place.feed),
            changes.place,
            max((each.id for each in entries), default=place.entry),
            max((each.last_ms for each in alerts), default=place.alert_ms),
        )
        self.problem = "; ".join(sorted(tried.problems))
        told = _told(_of_feed, (entry for entry in feed if entry.machine == name))
        told += changes.events + _told(_of_entry, entries) + _told(_of_alert, alerts)
        told.sort(key=lambda event: event.at_ms)
        told[:0] = [_event(deps.clock.now_ms(), "gap", "Gap", "netboot", missed)] if missed else []
        return told, len(feed) == PAGE

    def _looked_at(self, place: Place) -> tuple[str, Place]:
        missed, since = self._look.at(place.feed) if place.feed is not None else ("", None)
        return f"phases: {missed}" if missed else "", place._replace(feed=since)


class _Changes(NamedTuple):
    events: list[Event]
    place: int | None


def _changes(deps: Dependencies, name: str, place: int | None) -> _Changes:
    """Of conditions, from there on; the first of them is a gap where some may not be kept any more."""
    if place is None:
        return _Changes([], None)
    newest = max((each.id for each in deps.history.transitions(None, None, 1)), default=0)
    oldest = min((each.id for each in deps.history.transitions(None, 0, 1)), default=0)
    lost, place = newest < place, min(newest, place)
    found = deps.history.transitions(name, place, PAGE)
    events = _told(_of_transition, found)
    if lost or oldest > place + 1 or len(found) >= TRANSITIONS_KEPT:
        at_ms = found[0].at_ms if found else deps.clock.now_ms()
        detail = "changes of conditions before this may not be kept any more" if not lost else LOST
        events.insert(0, _event(at_ms, "gap", "Gap", "netboot", detail))
    return _Changes(events, max([newest, place, *(each.id for each in found)]))


def _told(tell: Callable[[Any], Event], things: Iterable[object]) -> list[Event]:
    return [tell(thing) for thing in things]


def _event(at_ms: int, kind: str, what: str, said_by: str, detail: str, **more: Any) -> Event:
    return Event(at_ms=at_ms, kind=kind, what=what, said_by=said_by, detail=detail, **more)


def _of_trace(trace: Trace) -> Iterable[Event]:
    for reached in trace.reached:
        said = {"boot": trace.boot, "uptime_ms": reached.uptime_ms}
        yield _event(reached.at_ms, "phase", reached.phase, reached.source, reached.detail, **said)
    for failure in trace.failures:
        said = {"boot": trace.boot, "uptime_ms": failure.uptime_ms}
        yield _event(failure.at_ms, "phase", "Failed", "reported", failure.detail, **said)
    for crash in trace.crashes:
        detail = "a kernel of it had crashed: `netboot boot show` has the end of its log"
        yield _event(crash.at_ms, "crash", "Crashed", "reported", detail, boot=trace.boot)


def _of_feed(entry: FeedEntry) -> Event:
    said = {"boot": entry.boot, "uptime_ms": entry.uptime_ms}
    return _event(entry.at_ms, "phase", entry.phase, entry.source, entry.detail, **said)


def _of_transition(found: Transition) -> Event:
    more = {"status": found.status, "reason": found.reason}
    return _event(found.at_ms, "condition", f"{found.type}={found.status}", found.reason, found.message, **more)


def _of_entry(entry: Entry) -> Event:
    detail = ": ".join(filter(None, (entry.said, entry.reason)))
    return _event(entry.at_ms, "enrolment", entry.act, entry.operator or "the machine", detail)


def _of_alert(alert: Alert) -> Event:
    return _event(alert.last_ms, "alert", alert.kind, "netboot", alert.said, count=alert.count)
