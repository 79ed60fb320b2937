"""Which boots have ended, and their traces: what the process `traces` asks of `data`."""

from collections.abc import Sequence
from typing import Protocol

from netboot.lifecycle.boot_spans import BootTrace, boot_trace
from netboot.lifecycle.drains import Drains
from netboot.lifecycle.history import History
from netboot.lifecycle.phases import Phase, Source
from netboot.lifecycle.ports import Clock, Sightings, States
from netboot.lifecycle.trace import Trace

QUIET_MS = 15 * 60_000
"""A boot of which nothing was heard for so long has ended where it is."""
SETTLE_MS = 5_000
"""After a machine came into service: for a report that is on its way."""
_READY_SECONDS, _SECONDS = 5.0, 30.0
_LATELY = 16
"""Boots of a machine among which the one before is looked for, and a later one."""
_ORDERS = 8


class Seen(States, Sightings, Protocol):
    """The state, for reading."""


class EndedBoots:
    """`netboot.controllers.traces.Boots`, over the files of `data`."""

    def __init__(self, states: Seen, history: History, drains: Drains, clock: Clock) -> None:
        self._states, self._history, self._drains, self._clock = states, history, drains, clock

    def started(self, after: int | None, limit: int) -> tuple[int, int, dict[str, float | None]]:
        if after is None:
            return max((entry.id for entry in self._states.feed(None, 1)), default=0), 0, {}
        entries = self._states.feed(after, limit)
        if not entries:  # of a state that was lost entries begin anew
            return min(after, max((entry.id for entry in self._states.feed(None, 1)), default=0)), 0, {}
        place = max(entry.id for entry in entries)
        boots: dict[str, float | None] = {entry.boot: None for entry in entries if entry.source is not Source.SERVED}
        ready = (entry.boot for entry in entries if entry.phase is Phase.READY)
        return place, len(entries), boots | dict.fromkeys(ready, _READY_SECONDS)

    def ended(self, boot: str) -> tuple[BootTrace | None, float | None]:
        trace = self._states.boot(boot)
        if trace is None:
            return None, None
        since_ms, now_ms = self._history.in_service([boot]).get(boot), self._clock.now_ms()
        lately = [each for each in self._states.boots(trace.machine, _LATELY) if _reported(each)]
        later, before = _around(lately, boot)
        served = since_ms is not None and now_ms - since_ms >= SETTLE_MS
        if served or later or now_ms - trace.last_ms >= QUIET_MS:
            orders = self._drains.of(trace.machine, _ORDERS) if before is not None else ()
            return boot_trace(trace, since_ms, before, orders), None
        if since_ms is not None:
            return None, min(_READY_SECONDS, (since_ms + SETTLE_MS - now_ms) / 1000)
        return None, _READY_SECONDS if trace.phase(Phase.READY) is not None else _SECONDS


def _reported(trace: Trace) -> bool:
    return trace.last_reported is not None or trace.phase(Phase.ATTESTED) is not None


def _around(lately: Sequence[Trace], boot: str) -> tuple[bool, Trace | None]:
    """Whether a later boot is among these, which are the newest first; and the one before."""
    place = next((number for number, each in enumerate(lately) if each.boot == boot), None)
    if place is None:
        return len(lately) == _LATELY, None
    return place > 0, lately[place + 1] if place + 1 < len(lately) else None
