"""Rollouts as custom resources: of each an object, by its number, with all that is known of it, and its machines packed
into one value. Pure but for its port.

So what a step comes to is written whole or not at all, and the API server itself lets nobody write by what is old.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from images.values.faults import first_fault
from images.values.strict import Strict
from images.values.types import Name, Sha256
from netboot.clock import Moment, moment_ms, rfc3339
from netboot.lifecycle.holds import one_line
from netboot.lifecycle.intents import LONGEST_REASON
from netboot.lifecycle.order_objects import LONGEST_WHO, LONGEST_WORDS, clean, printable
from netboot.lifecycle.packed_members import LARGEST, UnreadableError, packed, unpacked
from netboot.lifecycle.rollout import MemberState, Rollout, RolloutState
from netboot.lifecycle.rollout_counts import counted
from netboot.lifecycle.rollout_store import Members, Note
from netboot.machines.resources import Resource
from netboot.machines.strategy import Strategy

KIND = "rollout"
NOTES = 50
"""That an object has: the last ones. Older ones are on the disks of replicas that were there."""

_Words = Annotated[str, StringConstraints(max_length=LONGEST_WORDS), AfterValidator(printable)]
_Who = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_WHO), AfterValidator(one_line)]


class NoteTold(Strict):
    """Who did what to a rollout."""

    at: Moment
    """When."""
    who: _Who
    """Who did it, in his own words; netboot: by itself."""
    act: Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(one_line)]
    """What was done."""
    said: _Words = ""
    """Why, for people."""


class RolloutSpec(Strict):
    """A rollout, and how far it is. netboot writes it: `netboot rollout start`, `pause`, `resume`, `undo`."""

    channel: Name
    """The channel whose machines it brings to another image."""
    image: Sha256
    """The digest of the image that they are brought to."""
    image_name: Annotated[str, StringConstraints(max_length=256)]
    """What that is called."""
    base: Sha256
    """The digest of the image that the channel had."""
    state: Literal["running", "paused", "complete", "undone", "cancelled"]
    """running and paused ones are under way; the others have ended for good."""
    undoing: bool = False
    """It brings machines back to what they had."""
    rolling: bool = False
    """The canaries have proved the image."""
    done: Annotated[int, Field(ge=0)]
    """How many of its machines are in service with the image."""
    of: Annotated[int, Field(ge=0)]
    """How many it brings to the image."""
    why: _Words = ""
    """What it waits for, or why it ended so, for people."""
    verdict: _Words = ""
    """Why it was undone by itself."""
    operator: _Who
    """Who began it."""
    reason: Annotated[str, StringConstraints(max_length=LONGEST_REASON), AfterValidator(printable)] = ""
    """Why, for people."""
    started: Moment
    """When."""
    ended: Moment | None = None
    """When it ended; left out: it is under way."""
    strategy: Strategy
    """How machines are brought to the image."""
    on_next_boot: bool
    """Nobody is rebooted by it."""
    unproven: bool
    """Its machines are in fewer than two racks."""
    clock: Annotated[int, Field(ge=0)] = 0
    """Milliseconds in which its machines could be seen: by these its deadlines go."""
    blocked: Annotated[int, Field(ge=0)] | None = None
    """What the clock showed when it could first not go on."""
    released: bool = False
    """What it left assigned when it ended is assigned no more."""
    notes: Annotated[tuple[NoteTold, ...], Field(max_length=NOTES)] = ()
    """What was done to it, the last of these last."""
    members: Annotated[str, StringConstraints(max_length=LARGEST)]
    """Its machines: JSON, compressed (zlib), in base64. `netboot rollout status` shows them."""


class RolloutObject(NamedTuple):
    """One, as it was read. `generation`: grows with each change of what it says; `version`: what a change of it goes
    by. `said`: what it says; None: it cannot be told, for the reason that `fault` says; `metadata`: what others put
    there, which a change of it leaves."""

    number: int
    uid: str
    generation: int
    version: str
    said: "RolloutSaid | None"
    fault: str = ""
    metadata: Mapping[str, Any] = MappingProxyType({})


class RolloutSaid(NamedTuple):
    """What an object says."""

    rollout: Rollout
    members: Members
    notes: tuple[Note, ...] = ()
    released: bool = False


class RolloutObjects(Protocol):
    """Those of one namespace. Every read is of what is there now. Every method raises CannotTellError."""

    def read(self, number: int) -> RolloutObject | None:
        """One; None: there is none."""
        ...

    def all(self) -> list[RolloutObject]:
        """All, by their numbers."""
        ...

    def write(self, number: int, spec: RolloutSpec, before: RolloutObject | None) -> RolloutObject:
        """Make it, or change it as it was read; as it is then. Raises ConflictError: it is another one by now."""
        ...

    def delete(self, there: RolloutObject) -> None:
        """It is gone then, if it is still as it was read. Raises ConflictError: it is another one by now."""
        ...


def rollout_object(name: str, uid: str, generation: int, spec: object, version: str = "") -> RolloutObject:
    """One that says this; number 0: by its name it is none."""
    number = int(name) if name.isascii() and name.isdecimal() and str(int(name)) == name and len(name) < 16 else 0
    found = RolloutObject(number, uid, generation, version, None)
    if number == 0:
        return found._replace(fault=f"{KIND}/{name}: metadata.name: must be a number")
    try:
        return found._replace(said=_said(number, RolloutSpec.model_validate(spec)))
    except ValidationError as error:
        fault = first_fault(error)
        return found._replace(fault=f"{KIND}/{name}: {'.'.join(map(str, ('spec', *fault.location)))}: {fault.message}")
    except UnreadableError as error:
        return found._replace(fault=f"{KIND}/{name}: spec.members: {error}")


def kept_object(resource: Resource) -> RolloutObject:
    """One that was kept."""
    found = rollout_object(resource.name, resource.uid, resource.generation, resource.spec, resource.version)
    fault = f"{KIND}/{resource.name}: spec: {resource.refused}" if resource.refused else found.fault
    return found._replace(said=found.said if not resource.refused else None, fault=fault)


def spec_of(said: RolloutSaid) -> RolloutSpec:
    """A rollout as an object says it.

    Raises:
        ValueError: it has more machines than an object holds.
    """
    rollout, counts = said.rollout, counted(said.members)
    return RolloutSpec(
        channel=rollout.channel,
        image=rollout.image,
        image_name=clean(rollout.image_name, 256),
        base=rollout.base,
        state=rollout.state.value,
        undoing=rollout.undoing,
        rolling=rollout.rolling,
        done=counts.machines[MemberState.DONE],
        of=counts.of,
        why=clean(rollout.why, LONGEST_WORDS),
        verdict=clean(rollout.verdict, LONGEST_WORDS),
        operator=clean(rollout.operator, LONGEST_WHO),
        reason=clean(rollout.reason, LONGEST_REASON),
        started=rfc3339(rollout.started_ms),
        ended=rfc3339(rollout.ended_ms) if rollout.ended_ms is not None else None,
        strategy=rollout.strategy,
        on_next_boot=rollout.on_next_boot,
        unproven=rollout.unproven,
        clock=rollout.clock_ms,
        blocked=rollout.blocked,
        released=said.released,
        notes=tuple(_told(each) for each in said.notes[-NOTES:]),
        members=packed(said.members.values()),
    )


def _said(number: int, spec: RolloutSpec) -> RolloutSaid:
    rollout = Rollout(
        number=number,
        channel=spec.channel,
        image=spec.image,
        image_name=spec.image_name,
        base=spec.base,
        strategy=spec.strategy,
        on_next_boot=spec.on_next_boot,
        unproven=spec.unproven,
        state=RolloutState(spec.state),
        undoing=spec.undoing,
        rolling=spec.rolling,
        why=spec.why,
        clock_ms=spec.clock,
        blocked=spec.blocked,
        operator=spec.operator,
        reason=spec.reason,
        verdict=spec.verdict,
        started_ms=moment_ms(spec.started),
        ended_ms=moment_ms(spec.ended) if spec.ended is not None else None,
    )
    notes = tuple(Note(moment_ms(each.at), each.who, each.act, each.said) for each in spec.notes)
    return RolloutSaid(rollout, unpacked(spec.members), notes, spec.released)


def _told(note: Note) -> NoteTold:
    return NoteTold(
        at=rfc3339(note.at_ms),
        who=clean(note.who, LONGEST_WHO),
        act=clean(note.act, 64),
        said=clean(note.said, LONGEST_WORDS),
    )
