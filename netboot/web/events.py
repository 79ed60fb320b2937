"""`/v1/machines/<name>/events[/watch]`: what happened to a machine, from wherever that is kept, as one timeline.

Phases, failures and crashes of its boots; changes of its conditions, and so of its health; what operators did about its
identity; alerts. Moments are those of whoever found it, by this host's clock.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from flask import Response, jsonify, request

from netboot.join.enrolment import Alert, Entry
from netboot.lifecycle.errors import BadClaimError
from netboot.lifecycle.history import Transition
from netboot.lifecycle.state import FeedEntry
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.views import machine_named
from netboot.web import inputs
from netboot.web.dependencies import Dependencies, dependencies
from netboot.web.watch import PAGE, stream

MOST = 1_000
BOOTS = 50
"""Boots whose phases are in the timeline."""
Event = dict[str, Any]


def listed(name: str) -> Response:
    """The latest, in order; `since`: from where to watch without a gap."""
    inputs.only(("limit",))
    deps, limit = dependencies(), inputs.whole("limit", 100, 1, MOST)
    machine_named(deps.live.view(), name)
    since = Place.now(deps, name)  # before the rest is read: what comes meanwhile is told twice, never not at all
    found = [event for trace in deps.states.boots(name, BOOTS) for event in _of_trace(trace)]
    found += map(_of_transition, deps.history.transitions(name, None, limit))
    found += map(_of_entry, deps.register.store.history(name, limit))
    found += map(_of_alert, deps.register.store.alerts(name))
    found.sort(key=lambda event: event["at_ms"])
    return jsonify({"events": found[-limit:], "since": str(since)})


def watched(name: str) -> Response:
    """Lines `{"event": {…}}` and heartbeats, as of boots; without `since` from now on."""
    inputs.only(("since",))
    deps, text = dependencies(), request.args.get("since")
    machine_named(deps.live.view(), name)
    place = Place.now(deps, name) if text is None else Place.parse(text)
    return stream(deps, _Timeline(deps, name, place))


class Place(NamedTuple):
    """How far a timeline was read: ids of the feed, of transitions, of enrolment's history; alerts' last moment."""

    feed: int
    transition: int
    entry: int
    alert_ms: int

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> "Place":
        """What was given out as `since`.

        Raises:
            BadClaimError: it was not.
        """
        parts = text.split(".")
        if len(parts) != len(cls._fields) or not all(part.isdecimal() and len(part) < 19 for part in parts):
            raise BadClaimError("since must be what an earlier answer gave as `since`")
        return cls(*map(int, parts))

    @classmethod
    def now(cls, deps: Dependencies, name: str) -> "Place":
        """Behind everything that is there."""
        return cls(
            max((entry.id for entry in deps.sightings.feed(None, 1)), default=0),
            max((each.id for each in deps.history.transitions(name, None, 1)), default=0),
            max((entry.id for entry in deps.register.store.history(name, 1)), default=0),
            max((alert.last_ms for alert in deps.register.store.alerts(name)), default=0),
        )


class _Timeline:
    """A machine's, from that place on."""

    def __init__(self, deps: Dependencies, name: str, place: Place) -> None:
        self._deps, self._name, self._place = deps, name, place

    @property
    def since(self) -> str:
        return str(self._place)

    def more(self) -> tuple[list[Event], bool]:
        """What came to any of the places where it is kept, in the order of moments."""
        deps, name, place = self._deps, self._name, self._place
        feed = deps.sightings.feed(place.feed, PAGE)
        transitions = deps.history.transitions(name, place.transition, PAGE)
        entries = [each for each in deps.register.store.history(name, PAGE) if each.id > place.entry]
        alerts = [each for each in deps.register.store.alerts(name) if each.last_ms > place.alert_ms]
        self._place = Place(
            max((each.id for each in feed), default=place.feed),
            max((each.id for each in transitions), default=place.transition),
            max((each.id for each in entries), default=place.entry),
            max((each.last_ms for each in alerts), default=place.alert_ms),
        )
        found = _told(_of_feed, (entry for entry in feed if entry.machine == name))
        found += _told(_of_transition, transitions) + _told(_of_entry, entries) + _told(_of_alert, alerts)
        found.sort(key=lambda event: event["at_ms"])
        return found, PAGE in (len(feed), len(transitions))


def _told(tell: Callable[[Any], Event], things: Iterable[object]) -> list[Event]:
    return [tell(thing) for thing in things]


def _event(at_ms: int, kind: str, what: str, said_by: str, detail: str, **more: object) -> Event:
    return {"at_ms": at_ms, "kind": kind, "what": what, "said_by": said_by, "detail": detail, **more}


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
