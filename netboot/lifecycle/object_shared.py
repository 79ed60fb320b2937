"""What the object of a machine is to say where several replicas say it, and what one of them learns from it. Pure.

One replica leads, and writes how the machine is judged; each writes the facts of boots that the object lacks. None
takes anything away that another one knows.
"""

from collections.abc import Mapping, Sequence

from netboot.lifecycle.events import SharedRecord
from netboot.lifecycle.object_boots import BootTold, record_of
from netboot.lifecycle.object_health import health_of, later
from netboot.lifecycle.object_merged import merged
from netboot.lifecycle.object_status import ObjectStatus, status_in
from netboot.lifecycle.objects import MachineObject
from netboot.lifecycle.state import standing, standing_by
from netboot.lifecycle.trace import Trace, apply


def together(
    machine: MachineObject, mine: ObjectStatus, known: Sequence[BootTold] = (), *, leads: bool
) -> ObjectStatus:
    """What it is to say: what it says and what is known here. `known`: of the boots that it says, what is known here of
    them. Who does not `lead` leaves all but facts as they are."""
    said = status_in(machine.status)
    boots = merged(said.boots, (*mine.boots, *known), machine.name)
    counts = next((each for each in boots if each.proven), boots[0] if boots else None)
    health = later(said.health, mine.health, counts.id if counts is not None else "")
    return (mine if leads else said).model_copy(update={"boots": boots, "health": health})


def foreign(machine: MachineObject) -> bool:
    """Whether it says what this version cannot read: to write facts into that would be to take the rest away."""
    return bool(machine.status) and status_in(machine.status) == ObjectStatus()


def learnt(name: str, status: Mapping[str, object], at_ms: int) -> tuple[SharedRecord, ...]:
    """The facts of boots that the object of the machine `name` says, as records that were read at `at_ms`."""
    said = status_in(status)
    found = []
    for told in said.boots:
        record = record_of(told, name, at_ms)
        if record is None:
            continue
        health = health_of(said.health, name) if said.health.boot == told.id and said.health.arrived else None
        if health is not None:
            record = record.model_copy(update={"health": health, "arrived": int(said.health.arrived)})
        found.append(record)
    return tuple(found)


def lacks(record: SharedRecord, trace: Trace | None, since: int, arrived: int) -> bool:
    """Whether it says of a boot what is not known here. `trace`: what is; `since`, `arrived`: the numbers of the facts
    that gave it its standing, and of its latest health report."""
    after = apply(trace, record)
    if trace is None or after != trace:
        return True
    lower = record.since < since and standing_by(record) == standing(trace)
    return lower or (record.health is not None and record.arrived > arrived)
