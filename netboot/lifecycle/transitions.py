"""The two tables of transitions: of a boot, and of a machine over all its boots. Pure, and total: whatever fact comes
in whatever state has its row, so that no order, repetition or source of facts loses one or leads anywhere else.

A boot has the furthest step that it reached, and what is wrong with it. A machine has marks: what operators and
remedies put on it outlives its boots, and one mark takes no other off.
"""

from collections.abc import Iterable, Mapping
from enum import Enum, StrEnum
from typing import NamedTuple

from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reached import ORDER

# -- boots ------------------------------------------------------------------------------------------------------------


class Gate(StrEnum):
    """What the cluster says of the Node of a boot, which is Ready: not how far it came, but how it is now."""

    HEALTH_GATED = "HealthGated"
    """It is kept from work: `netboot.dev/unchecked` is on it."""
    IN_SERVICE = "InService"
    """It is not; whether somebody has cordoned it is no matter of the boot."""


Step = Phase | Gate
STEPS: tuple[Step, ...] = (*ORDER, *Gate)
"""In the order in which a boot goes through them."""
PLACE: Mapping[Step, int] = {step: place for place, step in enumerate(STEPS)}
"""How far each is."""


class Absence(StrEnum):
    """What did not come. It is known by clocks that stand still while we cannot see."""

    OVERDUE = "Overdue"
    """The next phase, by the deadline of the furthest."""
    SILENT = "Silent"
    """A Node that is Ready, or where there is no cluster any report, by the deadline `Lost`."""


Fact = Phase | Gate | Absence
"""`Phase.FAILED`: the machine says so, and it is the last that was heard of it."""


class Trouble(StrEnum):
    """What is wrong with a boot; NONE: it goes on, or is where it should be."""

    NONE = ""
    STUCK = "Stuck"
    FAILED = "Failed"
    LOST = "Lost"


class Kind(Enum):
    """What a fact is to a boot."""

    AHEAD = "a phase beyond the furthest"
    AGAIN = "a phase that is not beyond it: late, or told twice"
    GATE = "its Node is Ready, and gated or in service"
    FAILED = "it says that something failed"
    OVERDUE = "the next phase did not come in time"
    SILENT = "nothing is heard of it any more"


TROUBLES: Mapping[Trouble, Mapping[Kind, Trouble]] = {
    Trouble.NONE: {
        Kind.AHEAD: Trouble.NONE,
        Kind.AGAIN: Trouble.NONE,
        Kind.GATE: Trouble.NONE,
        Kind.FAILED: Trouble.FAILED,
        Kind.OVERDUE: Trouble.STUCK,
        Kind.SILENT: Trouble.LOST,
    },
    Trouble.STUCK: {
        Kind.AHEAD: Trouble.NONE,
        Kind.AGAIN: Trouble.STUCK,
        Kind.GATE: Trouble.NONE,
        Kind.FAILED: Trouble.FAILED,
        Kind.OVERDUE: Trouble.STUCK,
        Kind.SILENT: Trouble.LOST,
    },
    Trouble.FAILED: {
        Kind.AHEAD: Trouble.NONE,
        Kind.AGAIN: Trouble.FAILED,
        Kind.GATE: Trouble.NONE,
        Kind.FAILED: Trouble.FAILED,
        Kind.OVERDUE: Trouble.FAILED,  # it said why it goes no further, which tells more than that it does not
        Kind.SILENT: Trouble.LOST,
    },
    Trouble.LOST: {
        Kind.AHEAD: Trouble.NONE,
        Kind.AGAIN: Trouble.LOST,
        Kind.GATE: Trouble.NONE,
        Kind.FAILED: Trouble.LOST,
        Kind.OVERDUE: Trouble.LOST,
        Kind.SILENT: Trouble.LOST,
    },
}
"""What is wrong with a boot × what comes → what is wrong then."""


class Course(NamedTuple):
    """Where a boot is. Not all of these can be told apart by `Trace.state`, which knows no clock and no cluster."""

    step: Step = Phase.SCRIPT_SERVED
    trouble: Trouble = Trouble.NONE


def kind_of(fact: Fact, step: Step) -> Kind:
    """What a fact is to a boot whose furthest step that is."""
    if isinstance(fact, Absence):
        return Kind.OVERDUE if fact is Absence.OVERDUE else Kind.SILENT
    if isinstance(fact, Gate):
        return Kind.GATE
    if fact is Phase.FAILED:
        return Kind.FAILED
    return Kind.AHEAD if PLACE[fact] > PLACE[step] else Kind.AGAIN


def advanced(course: Course, fact: Fact) -> Course:
    """Where a boot is once a fact has come."""
    kind = kind_of(fact, course.step)
    step = fact if kind in (Kind.AHEAD, Kind.GATE) and not isinstance(fact, Absence) else course.step
    return Course(step, TROUBLES[course.trouble][kind])


def course_of(facts: Iterable[Fact]) -> Course:
    """Where a boot is of which these are known, in the order in which they are to count."""
    course = Course()
    for fact in facts:
        course = advanced(course, fact)
    return course


# -- machines ---------------------------------------------------------------------------------------------------------


class Mark(StrEnum):
    """What is on a machine, whatever boots; the gravest first."""

    RETIRED = "Retired"
    QUARANTINED = "Quarantined"
    HELD = "Held"
    DRAINING = "Draining"


class Act(StrEnum):
    """What operators and remedies do to a machine, and what its boots do to it: nothing."""

    RETIRE = "retire"
    REINSTATE = "reinstate"
    QUARANTINE = "quarantine"
    READMIT = "readmit"
    HOLD = "hold"
    RELEASE = "release"
    DRAIN = "drain"
    DRAINED = "drained"
    BOOT = "boot"


class Effect(NamedTuple):
    """The mark that an act puts on, and the one that it takes off."""

    on: Mark | None = None
    off: Mark | None = None


EFFECTS: Mapping[Act, Effect] = {
    Act.RETIRE: Effect(on=Mark.RETIRED),
    Act.REINSTATE: Effect(off=Mark.RETIRED),
    Act.QUARANTINE: Effect(on=Mark.QUARANTINED),
    Act.READMIT: Effect(off=Mark.QUARANTINED),
    Act.HOLD: Effect(on=Mark.HELD),
    Act.RELEASE: Effect(off=Mark.HELD),
    Act.DRAIN: Effect(on=Mark.DRAINING),
    Act.DRAINED: Effect(off=Mark.DRAINING),
    Act.BOOT: Effect(),
}
"""What an act does, whichever of the marks are on the machine: each of their sixteen sets has its successor."""


def marks_after(acts: Iterable[Act]) -> frozenset[Mark]:
    """The marks on a machine that was given its first act without any."""
    marks: set[Mark] = set()
    for act in acts:
        effect = EFFECTS[act]
        marks |= {effect.on} if effect.on is not None else set()
        marks -= {effect.off} if effect.off is not None else set()
    return frozenset(marks)


def gravest(marks: frozenset[Mark]) -> Mark | None:
    """The mark that is named where there is room for one."""
    return next((mark for mark in Mark if mark in marks), None)
