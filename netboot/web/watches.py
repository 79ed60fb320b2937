"""`/v1/{fleet,rollouts/<number>,drains,discovered,audit}/watch`: what one leaves open, beside boots and timelines."""

from collections.abc import Sequence
from typing import Annotated

from flask import Response

from images.values.strict import Strict
from netboot.web import boots, drains, fleet, rollouts
from netboot.web.audits import RecordShown, numbered
from netboot.web.boots import DiscoveredAsked
from netboot.web.changes import ChangesAsked, changes
from netboot.web.dependencies import Dependencies, dependencies
from netboot.web.inputs import Whole
from netboot.web.preconditions import Tag
from netboot.web.selecting import SelectAsked
from netboot.web.watch import PAGE, since_of, stream

_FLEET = Tag("fleet", fleet.summary, without=("at",))
_ROLLOUT = Tag("rollout", rollouts.told)
_DRAINS = Tag("drains", drains.listed)
_DISCOVERED = Tag("discovered", boots.discovered, within={"discovered": ("last_at",)})
"""Not that they ask again, every half a minute each."""


class AuditWatched(Strict):
    """From where: the `id` of a record, or what a heartbeat gave as `since`; without it from now on."""

    since: Annotated[int, Whole(0, 2**62)] | None = None


def fleet_changes(query: ChangesAsked) -> Response:
    """Lines `{"event": {…}}` with what `/v1/fleet` has, now and each time that it is otherwise, and heartbeats."""
    return changes(query, _FLEET, fleet.summary)


def rollout_changes(number: int, query: ChangesAsked) -> Response:
    """Lines `{"event": {…}}` with the rollout, without its machines, now and each time that it is otherwise, and
    heartbeats."""
    return changes(query, _ROLLOUT, lambda: rollouts.told(number))


def drain_changes(query: ChangesAsked) -> Response:
    """Lines `{"event": {…}}` with all drains that stand, now and each time that they are otherwise, and heartbeats."""
    return changes(query, _DRAINS, lambda: drains.listed(SelectAsked()))


def discovered_changes(query: ChangesAsked) -> Response:
    """Lines `{"event": {…}}` with the latest hundred that asked and may not boot, now and each time that there is
    anything new, and heartbeats."""
    return changes(query, _DISCOVERED, lambda: boots.discovered(DiscoveredAsked()))


def audit_records(query: AuditWatched) -> Response:
    """Lines `{"event": {…}}` with each record of the audit, heartbeats, and `{"gap": words}` where some are missing;
    without `since` from now on."""
    deps = dependencies()
    since = since_of(query.since)
    return stream(deps, _Records(deps, deps.audit.ends()[1] if since is None else since))


class _Records:
    gap = problem = ""

    def __init__(self, deps: Dependencies, since: int) -> None:
        self._deps, self.since = deps, since

    def more(self) -> tuple[Sequence[RecordShown], bool]:
        """Records, the oldest first; a gap alone, and what follows it the next time."""
        self.gap, (oldest, newest) = "", self._deps.audit.ends()
        if self.since > newest:
            self.gap, self.since = "that place is after all that there is: the audit was lost, or is older", newest
        elif self.since and self.since < oldest - 1:
            self.gap, self.since = "what came after that place is not kept any more", oldest - 1
        if self.gap or self.since == newest:
            return (), bool(self.gap)
        found = self._deps.audit.after(self.since, PAGE)
        self.since = found[-1][0] if found else self.since
        return [numbered(number, record) for number, record in found], len(found) == PAGE
