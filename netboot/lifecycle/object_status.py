"""What the object of a machine says of it (`status` of a Machine in Kubernetes): values, from what is known. Pure.

One object has at most MOST_BYTES, whatever machines and operators say: texts are cut, and of boots the last few are
told. What differs between two of these, and who can have brought that about, says how soon it is written.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, StringConstraints, ValidationError

from images.values.strict import Strict
from netboot.lifecycle.conditions import Judged, MachineCondition, moment
from netboot.lifecycle.object_boots import MOST_BOOTS, BootTold, boot_told, cut
from netboot.lifecycle.object_health import HealthTold
from netboot.lifecycle.phases import OBSERVED_PHASES, Phase
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.summary import summary_of
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.transitions import PLACE
from netboot.machines.classes import Class
from netboot.machines.values import Machine, Profile

MOST_BYTES = 20_000
"""Of a status as JSON."""
MOST_MESSAGE = 800
"""Bytes of a condition's message."""
LEFT_OUT = "LeftOut"
"""The object has faults, or is not in force for another reason: no machine is declared by it."""

_Word = Annotated[str, StringConstraints(max_length=64)]
_Moment = Annotated[str, StringConstraints(max_length=40)]


class ConditionTold(Strict):
    """As Kubernetes has conditions (`metav1.Condition`), for which `kubectl wait` looks."""

    type: _Word
    """Which it is, like InService."""
    status: Literal["True", "False", "Unknown"]
    """Whether it is so."""
    reason: _Word
    """Why, in one word, for programs."""
    message: Annotated[str, StringConstraints(max_length=MOST_MESSAGE)]
    """Why, for people."""
    lastTransitionTime: _Moment  # noqa: N815 - Kubernetes' name
    """Since when its status is this."""
    observedGeneration: Annotated[int, Field(ge=0)] = 0  # noqa: N815 - Kubernetes' name
    """Of which generation of the object's spec; 0: of none, or nobody can tell. What is left out is believed."""


class ImagesTold(Strict):
    """Images of a machine, by their digests."""

    in_force: _Word = ""
    """What it would be served now."""
    booted: _Word = ""
    """What the boot that counts was served."""
    short: _Word = ""
    """The first twelve digits of that, for tables."""


class ObjectStatus(Strict):
    """What is observed of it: no word of an operator is here, and netboot alone writes it."""

    phase: _Word = ""
    """How far its boot came (docs/lifecycle.md), or Stuck, Failed, Lost; LeftOut: the object is not in force."""
    reason: _Word = ""
    """The reason of that condition which says how it is."""
    boot: _Word = ""
    """Id of the boot that counts."""
    node: Annotated[str, StringConstraints(max_length=253)] = ""
    """The name of its Node."""
    image: ImagesTold = ImagesTold()
    """Which image it has, and which it would get."""
    boots: Annotated[tuple[BootTold, ...], Field(max_length=MOST_BOOTS + 1)] = ()
    """Its last boots that proved themselves, the newest first; before them one that is under way and has not yet."""
    health: HealthTold = HealthTold()
    """What the boot that counts reported of its hardware, where several replicas share what they are told."""
    conditions: Annotated[tuple[ConditionTold, ...], Field(max_length=16)] = ()
    """As docs/conditions.md has them, the same as `netboot machine show` shows."""

    def document(self) -> dict[str, Any]:
        """As it is written; what says nothing is left out."""
        document = self.model_dump(mode="json", exclude_defaults=True)
        for said, each in zip(document.get("conditions", ()), self.conditions, strict=True):
            said["observedGeneration"] = each.observedGeneration
        return document


class Facts(NamedTuple):
    """What is known of a machine that the inventory in force has. `boots`: the newest first; `in_force`: the digest of
    what it would be served; empty: nothing; `profile`, `of_class`: its own, to which it leaves what it does not say."""

    machine: Machine
    judged: Judged | None
    boots: tuple[Trace, ...]
    in_force: str
    profile: Profile | None = None
    of_class: Class | None = None
    since: Mapping[str, int] = {}
    """Of these boots the numbers that say which is newer (`netboot.lifecycle.arrivals`)."""
    health: HealthTold = HealthTold()
    """Of the boot that counts, where it is shared."""
    known: Sequence[BootTold] = ()
    """Where it is shared, what is known here of the boots that the object says."""


def status_of(facts: Facts | None, generation: int) -> ObjectStatus:
    """What its object is to say. None: the inventory in force has no such machine. `generation`: of the object's spec,
    as it is in force; 0: none of it is."""
    if facts is None:
        return ObjectStatus(phase=LEFT_OUT, reason=LEFT_OUT)
    judged, image = facts.judged, ImagesTold(in_force=facts.in_force)
    if judged is None:
        return ObjectStatus(node=facts.machine.node_name, image=image, boots=_boots(facts))
    booted = judged.image
    return ObjectStatus(
        phase=judged.trouble.value or judged.step or Reason.NEVER_BOOTED.value,
        reason=summary_of(judged).reason,
        boot=judged.boot,
        node=facts.machine.node_name,
        image=image.model_copy(update={"booted": booted, "short": booted[:12]}),
        boots=_boots(facts),
        health=facts.health,
        conditions=tuple(_condition(each, generation) for each in judged.conditions),
    )


def status_in(document: Any) -> ObjectStatus:
    """What an object says; nothing, where it is not what we write, as somebody may have changed it."""
    try:
        return ObjectStatus.model_validate(document, strict=False)
    except ValidationError:
        return ObjectStatus()


def _condition(condition: MachineCondition, generation: int) -> ConditionTold:
    return ConditionTold(
        type=condition.type.value,
        status=condition.status,
        reason=condition.reason.value,
        message=cut(condition.message, MOST_MESSAGE),
        lastTransitionTime=moment(condition.since_ms),
        observedGeneration=generation,
    )


def _boots(facts: Facts) -> tuple[BootTold, ...]:
    told = [boot_told(trace, facts.since.get(trace.boot, 0)) for trace in facts.boots]
    there = [each for each in told if each is not None]
    first = [each for each in there[:1] if not each.proven]
    return (*first, *[each for each in there if each.proven][:MOST_BOOTS])


# -- how soon it is written -------------------------------------------------------------------------------------------


class Urgency(IntEnum):
    """The most urgent first."""

    NOW = 0
    """A boot proved itself, is Ready, or failed after its proof; or one that proved itself is stuck."""
    SOON = 1
    """What else nobody on the wire can have brought about by a claim."""
    LATER = 2
    """What anybody on the wire may have brought about, and words alone."""


def urgency_of(before: ObjectStatus, after: ObjectStatus) -> Urgency:
    """How soon to write what differs."""
    milestone = milestone_of(after)
    if milestone is not None and milestone != milestone_of(before):
        return Urgency.NOW
    if _counted_proven(after) and _stuck(after) - _stuck(before):
        return Urgency.NOW
    return Urgency.SOON if _sure(before) != _sure(after) else Urgency.LATER


def milestone_of(status: ObjectStatus) -> tuple[str, str] | None:
    """Of the newest boot that proved itself."""
    boot = next((each for each in status.boots if each.proven), None)
    if boot is None:
        return None
    if boot.phase == Phase.FAILED:
        return boot.id, Phase.FAILED.value
    ready = _PLACES.get(boot.phase, 0) >= PLACE[Phase.READY]
    return boot.id, (Phase.READY if ready else Phase.ATTESTED).value


_PLACES: Mapping[str, int] = {str(step): place for step, place in PLACE.items()}


def _counted_proven(status: ObjectStatus) -> bool:
    return any(each.proven and each.id == status.boot for each in status.boots)


def _stuck(status: ObjectStatus) -> set[str]:
    return {each.type for each in status.conditions if each.reason == Reason.STUCK}


def _sure(status: ObjectStatus) -> tuple[Any, ...]:
    """What no claim alters: anybody can ask for a machine's script, and report what its boot does."""
    own = _counted_proven(status)
    conditions = {each.type: (each.status, each.reason, each.observedGeneration) for each in status.conditions}
    return (
        status.node,
        status.image.in_force,
        tuple(_surely(each) for each in status.boots if each.proven),
        conditions if own else conditions.get("InService"),
        (status.phase, status.reason) if own else status.phase == LEFT_OUT,
    )


def _surely(boot: BootTold) -> BootTold:
    """Who fetched its script may report in its name, as long as it runs."""
    steps = tuple(each for each in boot.steps if each.phase in OBSERVED_PHASES)
    return boot.model_copy(update={"steps": steps, "failures": ()})


def claimed(status: ObjectStatus) -> tuple[Any, ...]:
    """What anybody on the wire may have brought about."""
    proven = [each for each in status.boots if each.proven]
    reports = tuple(
        (tuple(step for step in each.steps if step.phase not in OBSERVED_PHASES), each.failures) for each in proven
    )
    return tuple(each for each in status.boots if not each.proven), reports, status.health
