"""What the object of a machine is to say where several replicas say it, and what one of them learns from it. Pure.

One replica leads, and writes how the machine is judged; each writes the facts of boots that the object lacks. None
takes anything away that another one knows.
"""

from collections.abc import Mapping, Sequence

from netboot.clock import moment_ms
from netboot.lifecycle.arrivals import AHEAD_MS, credible
from netboot.lifecycle.conditions import moment
from netboot.lifecycle.events import SharedRecord
from netboot.lifecycle.object_boots import BootTold, record_of
from netboot.lifecycle.object_health import HealthTold, health_of, later
from netboot.lifecycle.object_merged import merged
from netboot.lifecycle.object_status import ConditionTold, ObjectStatus, status_in
from netboot.lifecycle.objects import MachineObject
from netboot.lifecycle.state import standing, standing_by
from netboot.lifecycle.trace import Trace, apply

SKEW_MS = 86_400_000
"""By so much a clock of another replica may be ahead, and what it wrote as the time of a condition stays."""


def together(
    machine: MachineObject, mine: ObjectStatus, known: Sequence[BootTold] = (), *, leads: bool, now_ms: int
) -> ObjectStatus:
    """What it is to say: what it says and what is known here. `known`: of the boots that it says, what is known here of
    them. Who does not `lead` leaves all but facts as they are; who does leaves the times of conditions whose status is
    what it was. `now_ms`: by our clock."""
    said = status_in(machine.status)
    boots = merged(said.boots, (*mine.boots, *known), machine.name, now_ms)
    counts = next((each for each in boots if each.proven), boots[0] if boots else None)
    health = later(_believed(said.health, now_ms), mine.health, counts.id if counts is not None else "")
    facts = {"boots": boots, "health": health}
    if not leads:
        return said.model_copy(update=facts)
    return mine.model_copy(update=facts | {"conditions": _since_then(said.conditions, mine.conditions, now_ms)})


def _since_then(said: Sequence[ConditionTold], mine: Sequence[ConditionTold], now_ms: int) -> tuple[ConditionTold, ...]:
    """Each replica has seen by itself since when a condition is what it is: while that stays, the first word counts,
    unless it is no moment of ours, or one that is to come."""
    before = {(each.type, each.status): each.lastTransitionTime for each in said}
    there = {which: at for which, at in before.items() if _is_past(at, now_ms)}
    return tuple(
        each.model_copy(update={"lastTransitionTime": there.get((each.type, each.status), each.lastTransitionTime)})
        for each in mine
    )


def _is_past(text: str, now_ms: int) -> bool:
    try:
        at_ms = moment_ms(text)
    except ValueError:
        return False
    return moment(at_ms) == text and at_ms <= now_ms + SKEW_MS


def _believed(health: HealthTold, now_ms: int) -> HealthTold:
    return health if credible(int(health.arrived or 0), now_ms) else HealthTold()


def foreign(machine: MachineObject) -> bool:
    """Whether it says what this version cannot read: to write facts into that would be to take the rest away."""
    return bool(machine.status) and status_in(machine.status) == ObjectStatus()


def kept_facts(status: Mapping[str, object]) -> bool:
    """Whether what it says of boots can be taken over: an API server whose definition is older has dropped what that
    needs, or an older netboot wrote it."""
    boots = status.get("boots")
    return not isinstance(boots, list) or all(isinstance(each, dict) and each.get("since") for each in boots)


def lost(ours: Mapping[str, object], machine: MachineObject, now_ms: int) -> bool:
    """Whether the object lacks facts that were there as `ours`, and that nothing newer has pushed out."""
    said = status_in(machine.status).boots
    return merged(said, status_in(ours).boots, machine.name, now_ms) != said


def learnt(name: str, status: Mapping[str, object], at_ms: int) -> tuple[SharedRecord, ...]:
    """The facts of boots that the object of the machine `name` says, as records that were read at `at_ms`."""
    said = status_in(status)
    found = []
    for told in said.boots:
        record = record_of(told, name, at_ms)
        if record is None or not credible(record.since, at_ms):
            continue
        reported = _believed(said.health, at_ms)
        health = health_of(reported, name) if reported.boot == told.id else None
        if health is not None:
            record = record.model_copy(update={"health": health, "arrived": int(reported.arrived)})
        found.append(record)
    return tuple(found)


def unbelievable(status: Mapping[str, object], now_ms: int) -> str:
    """What the object of a machine says that is not taken over, for its numbers are none that a replica gives; empty:
    there is nothing of that kind."""
    said = status_in(status)
    boots = [each.id for each in said.boots if each.since and not credible(int(each.since), now_ms)]
    health = [said.health.boot] if said.health.arrived and not credible(int(said.health.arrived), now_ms) else []
    if not boots and not health:
        return ""
    what = " and ".join([*(f"boot {each}" for each in boots[:1]), *(f"the report of boot {each}" for each in health)])
    return (
        f"{what}: numbered {AHEAD_MS // 86_400_000} days after now or later, so a clock is wrong (see `timedatectl` of "
        "each replica), or somebody else writes there"
    )


def lacks(record: SharedRecord, trace: Trace | None, since: int, arrived: int) -> bool:
    """Whether it says of a boot what is not known here. `trace`: what is; `since`, `arrived`: the numbers of the facts
    that gave it its standing, and of its latest health report."""
    after = apply(trace, record)
    if trace is None or after != trace:
        return True
    lower = record.since < since and standing_by(record) == standing(trace)
    return lower or (record.health is not None and record.arrived > arrived)
