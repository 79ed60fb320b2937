"""Where channels point, and their rollouts, as custom resources that replicas share: of each channel one object, by its
name, with the last rollout of it and all its machines, packed into one value. Pure but for its port.

So what a step comes to is written whole or not at all: that a rollout begins where none is under way, that it is
complete and the channel points to its image, that a person sets the channel and it is over.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from pydantic import ValidationError

from images.values.faults import first_fault
from images.values.types import NAME
from netboot.clock import moment_ms, rfc3339
from netboot.lifecycle.intents import LONGEST_REASON
from netboot.lifecycle.order_objects import LONGEST_WHO, LONGEST_WORDS, clean
from netboot.lifecycle.packed_members import packed, unpacked
from netboot.lifecycle.rollout import Member, MemberState, Rollout, RolloutState
from netboot.lifecycle.rollout_counts import counted
from netboot.lifecycle.rollout_specs import LONGEST_NAME, NOTES, LastRollout, NoteTold, RolloutSpec
from netboot.lifecycle.rollout_store import Note
from netboot.machines.resources import Resource

KIND = "rollout"
COPY = f"{KIND}/{{0}}: spec.rollout.channel: it is a copy of {KIND}/{{1}}: delete this one"


class RolloutObject(NamedTuple):
    """One, as it was read. `generation`: grows with each change of what it says; `version`: what a change of it goes
    by. `spec`: what it says; None: that cannot be told, for the reason that `fault` says."""

    channel: str
    uid: str
    generation: int
    version: str
    spec: RolloutSpec | None
    fault: str = ""


class RolloutSaid(NamedTuple):
    """A rollout, as an object says it."""

    rollout: Rollout
    members: dict[str, Member]
    notes: tuple[Note, ...] = ()
    released: bool = False


class Said(NamedTuple):
    """What an object says. `rollout` None: there is none."""

    image: str
    image_name: str
    who: str
    since_ms: int
    rollout: RolloutSaid | None = None

    @property
    def under_way(self) -> Rollout | None:
        """Its rollout, while that is."""
        return self.rollout.rollout if self.rollout is not None and self.rollout.rollout.under_way else None


class RolloutObjects(Protocol):
    """Those of one namespace. Every read is of what is there now. Every method raises CannotTellError."""

    def read(self, channel: str) -> RolloutObject | None:
        """One; None: there is none."""
        ...

    def all(self) -> list[RolloutObject]:
        """By the names of channels."""
        ...

    def write(self, channel: str, spec: RolloutSpec, before: RolloutObject | None) -> RolloutObject:
        """Make it, or change it as it was read; as it is then. Raises ConflictError: it is another one by now."""
        ...

    def number(self, least: int) -> int:
        """One that no rollout was given, that much at least."""
        ...


def rollout_object(name: str, uid: str, generation: int, spec: object, version: str = "") -> RolloutObject:
    """One that says this."""
    found = RolloutObject(name, uid, generation, version, None)
    if not NAME.fits(name):
        return found._replace(fault=f"{KIND}/{name}: metadata.name: {NAME.message}")
    try:
        said = RolloutSpec.model_validate(spec)
    except ValidationError as error:
        fault = first_fault(error)
        return found._replace(fault=f"{KIND}/{name}: {'.'.join(map(str, ('spec', *fault.location)))}: {fault.message}")
    if said.rollout is not None and said.rollout.channel != name:
        return found._replace(fault=COPY.format(name, said.rollout.channel))
    return found._replace(spec=said)


def kept_object(resource: Resource) -> RolloutObject:
    """One that was kept."""
    found = rollout_object(resource.name, resource.uid, resource.generation, resource.spec, resource.version)
    if not resource.refused:
        return found
    return found._replace(spec=None, fault=f"{KIND}/{resource.name}: spec: {resource.refused}")


def said_of(spec: RolloutSpec, present: Mapping[str, str]) -> Said:
    """What an object says. `present`: former name → the name of now, of machines, by which they are in it here.

    Raises:
        UnreadableError: its machines are not what is packed here.
    """
    said = Said(spec.image, spec.image_name, spec.who, moment_ms(spec.since))
    if spec.rollout is None:
        return said
    found = _rollout(spec.rollout)
    for former in present.keys() & found.members.keys():  # what the name of now has stays
        member = found.members.pop(former)
        found.members.setdefault(present[former], member.model_copy(update={"machine": present[former]}))
    return said._replace(rollout=found)


def by_rollout(number: int) -> str:
    """Who sets a channel whose rollout is complete."""
    return f"rollout {number}"


def spec_of(said: Said) -> RolloutSpec:
    """What an object is to say.

    Raises:
        RolloutRefusedError: its rollout has more machines than an object holds.
    """
    return RolloutSpec(
        image=said.image,
        image_name=clean(said.image_name, LONGEST_NAME),
        who=clean(said.who, LONGEST_WHO) or "netboot",
        since=rfc3339(said.since_ms),
        rollout=_last(said.rollout) if said.rollout is not None else None,
    )


def _last(said: RolloutSaid) -> LastRollout:
    rollout, counts = said.rollout, counted(said.members)
    return LastRollout(
        number=rollout.number,
        channel=rollout.channel,
        image=rollout.image,
        image_name=clean(rollout.image_name, LONGEST_NAME),
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


def _rollout(said: LastRollout) -> RolloutSaid:
    rollout = Rollout(
        number=said.number,
        channel=said.channel,
        image=said.image,
        image_name=said.image_name,
        base=said.base,
        strategy=said.strategy,
        on_next_boot=said.on_next_boot,
        unproven=said.unproven,
        state=RolloutState(said.state),
        undoing=said.undoing,
        rolling=said.rolling,
        why=said.why,
        clock_ms=said.clock,
        blocked=said.blocked,
        operator=said.operator,
        reason=said.reason,
        verdict=said.verdict,
        started_ms=moment_ms(said.started),
        ended_ms=moment_ms(said.ended) if said.ended is not None else None,
    )
    notes = tuple(Note(moment_ms(each.at), each.who, each.act, each.said) for each in said.notes)
    return RolloutSaid(rollout, unpacked(said.members), notes, said.released)


def _told(note: Note) -> NoteTold:
    return NoteTold(
        at=rfc3339(note.at_ms),
        who=clean(note.who, LONGEST_WHO),
        act=clean(note.act, 64),
        said=clean(note.said, LONGEST_WORDS),
    )
