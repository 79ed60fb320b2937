"""Holds that people declare as objects (`kubectl apply`, `kubectl delete hold`): what one is, and what is to be done so
that these stand. Pure.

They are kept with all other holds, by an owner of their own each, so that whoever asks who is held asks one place; what
cannot be read of them takes none off.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from images.values.faults import first_fault
from images.values.strict import Strict
from images.values.types import NAME, Name
from netboot.clock import moment_ms, rfc3339
from netboot.lifecycle.intents import LONGEST_REASON, Intent, Order, PutOn, TakeOff
from netboot.lifecycle.object_status import ConditionTold
from netboot.lifecycle.transitions import Mark
from netboot.machines.resources import Resource

OBJECTS = "kubernetes"
"""Who acts where an object comes and goes; and, with the object's name, the owner of what it holds."""
KIND = "hold"
IN_FORCE = "InForce"
Why = Literal["Held", "Ended", "NoSuchMachine", "Malformed"]


def _one_line(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("must be one line of printable text")
    return text


def _moment(text: str) -> str:
    moment_ms(text)
    return text


class Hold(Strict):
    """A machine takes no new work for as long as this object is there: its Node has the taint netboot.dev/held, that of
    each boot to come, too."""

    machine: Name
    """The machine, by its name in the inventory. It stays: to hold another one, make another object."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_REASON), AfterValidator(_one_line)]
    """Why, for whoever finds it held."""
    by: Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_one_line)] | None = None
    """Who wants it, in his own words; nobody checks it. Who wrote the object is in the API server's audit log."""
    until: Annotated[str, StringConstraints(max_length=40), AfterValidator(_moment)] | None = None
    """When it ends by itself, by the clock of the host that netboot runs on; left out: when the object is deleted."""

    @property
    def until_ms(self) -> int | None:
        """Its end, as what is kept has it."""
        return moment_ms(self.until) if self.until is not None else None


class HoldStatus(Strict):
    """What became of it. Nothing is decided by it; netboot alone writes it."""

    conditions: Annotated[tuple[ConditionTold, ...], Field(max_length=4)] = ()
    """InForce: whether the machine is held by it, else why not."""


class HoldObject(NamedTuple):
    """One, as it was read. `hold` None: it cannot be one, for the reason that `fault` says."""

    name: str
    uid: str
    hold: Hold | None
    fault: str = ""


class HoldSaid(Strict):
    """What became of an object. `machine`: the one that it names, or named before its fault; `held`: the one that it
    holds, or held last, by its name in the inventory; `since_ms`: since when this is so."""

    uid: str
    machine: str = ""
    held: str = ""
    by: str = ""
    why: Why
    message: str
    since_ms: int

    def status(self) -> dict[str, Any]:
        """As it is written into the object."""
        condition = ConditionTold(
            type=IN_FORCE,
            status="True" if self.why == "Held" else "False",
            reason=self.why,
            message=self.message,
            lastTransitionTime=rfc3339(self.since_ms, "seconds"),
        )
        return HoldStatus(conditions=(condition,)).model_dump(mode="json", exclude_defaults=True)


class HoldsSaid(Strict):
    """Of all, by their names."""

    holds: Mapping[str, HoldSaid] = Field(default_factory=dict)


class Step(NamedTuple):
    """One thing to do. `name`: of the object by which it is so, or was."""

    machine: str
    name: str
    order: Order


class Machines(NamedTuple):
    """Of the inventory in force: their names, and former name → the name of now."""

    names: Set[str]
    present: Mapping[str, str]


def shown(name: str) -> str:
    """As kubectl takes it."""
    return f"{KIND}/{name}"


def owner_of(name: str) -> str:
    """Whose a hold is that an object declares."""
    return f"{OBJECTS}/{name}"


def is_object(intent: Intent) -> bool:
    """Whether an object declares it."""
    return intent.owner.startswith(owner_of(""))


def object_of(resource: Resource) -> HoldObject:
    """What an object says."""
    if not NAME.fits(resource.name):
        return HoldObject(resource.name, resource.uid, None, f"metadata.name {NAME.message}")
    if resource.refused:
        return HoldObject(resource.name, resource.uid, None, resource.refused)
    try:
        return HoldObject(resource.name, resource.uid, Hold.model_validate(resource.spec))
    except ValidationError as error:
        fault = first_fault(error)
        where = f"spec.{fault.key}" if fault.location else "spec"
        return HoldObject(resource.name, resource.uid, None, f"{where}: {fault.message}")


def steps(
    objects: Iterable[HoldObject],
    standing: Sequence[Intent],
    machines: Machines,
    before: Mapping[str, HoldSaid],
    now_ms: int,
) -> list[Step]:
    """What is to be done so that what stands is what the objects say. `standing`: of all owners; `before`: what was
    said of them last.

    Of one that cannot be read, or names a machine that there is not, what it held stays held: nobody said that it is to
    be let go. A machine that has another name now is meant by the one before, too, and stays so for as long as it is
    the same object, whoever has that name afterwards.
    """
    ours = [intent for intent in standing if is_object(intent)]
    by_owner = defaultdict[str, list[Intent]](list)
    for intent in ours:
        by_owner[intent.owner].append(intent)
    found, there = list[Step](), set[str]()
    for each in objects:
        owner, hold = owner_of(each.name), each.hold
        there.add(owner)
        machine = _machine(each, machines, before.get(each.name))
        if hold is None or machine is None:
            continue
        own = by_owner[owner]
        if _ended(hold, now_ms):
            found += [_off(intent, f"{shown(each.name)} ended at {hold.until}") for intent in own]
            continue
        order = PutOn(Mark.HELD, hold.reason, hold.until_ms, owner, exactly=True)
        if not any(_same(intent, machine, order, who_of(each)) for intent in own):
            found.append(Step(machine, each.name, order))
        found += [_off(one, f"{shown(each.name)} is of {machine} now") for one in own if one.machine != machine]
    return found + [_off(one, f"{_of(one)} was deleted") for one in ours if one.owner not in there]


def who_of(each: HoldObject) -> str:
    """By whom it is, as what is kept has it: the object, and whom that names."""
    by = each.hold.by if each.hold is not None else None
    return f"{by} ({shown(each.name)})" if by else shown(each.name)


def said(
    objects: Iterable[HoldObject], machines: Machines, before: Mapping[str, HoldSaid], now_ms: int
) -> dict[str, HoldSaid]:
    """What became of each, once `steps` are done. `before`: what was said last, for since when it is so."""
    return {each.name: _said(each, machines, before.get(each.name), now_ms) for each in objects}


def _said(each: HoldObject, machines: Machines, before: HoldSaid | None, now_ms: int) -> HoldSaid:
    if before is not None and before.uid != each.uid:
        before = None
    machine = _machine(each, machines, before)
    why, message = _word(each, machine, _meant(each, before), now_ms)
    since = before.since_ms if before is not None and before.why == why else now_ms
    by_it = (before.machine, before.by) if before is not None else ("", "")
    named, by = (each.hold.machine, each.hold.by or "") if each.hold is not None else by_it
    held = machine or (before.held if before is not None and before.machine == named else "")
    return HoldSaid(uid=each.uid, machine=named, held=held, by=by, why=why, message=message, since_ms=since)


def _word(each: HoldObject, machine: str | None, meant: str, now_ms: int) -> tuple[Why, str]:
    hold = each.hold
    if hold is None:
        return "Malformed", f"{each.fault}; what it held before stays held until the object is mended or deleted"[:800]
    if machine is None:
        return "NoSuchMachine", (f"the inventory in force has no machine {meant!r}; it is held as soon as there is one")
    if _ended(hold, now_ms):
        return "Ended", f"it ended at {hold.until}"
    until = f" until {hold.until}" if hold.until is not None else ""
    return "Held", f"machine {machine} is held{until}"


def _machine(each: HoldObject, machines: Machines, before: HoldSaid | None) -> str | None:
    """Which is meant; None: none that there is."""
    name = _meant(each, before)
    return name if name in machines.names else machines.present.get(name)


def _meant(each: HoldObject, before: HoldSaid | None) -> str:
    """The one that this very object held, by its name of then, else the one that it names; "": nobody can read it."""
    named = each.hold.machine if each.hold is not None else ""
    return named if before is None or (before.uid, before.machine) != (each.uid, named) else before.held or named


def _ended(hold: Hold, now_ms: int) -> bool:
    return hold.until_ms is not None and hold.until_ms <= now_ms


def _same(intent: Intent, machine: str, order: PutOn, who: str) -> bool:
    has = intent.machine, intent.mark, intent.reason, intent.until_ms, intent.who
    return has == (machine, order.mark, order.reason, order.until_ms, who)


def _of(intent: Intent) -> str:
    return shown(intent.owner.partition("/")[2])


def _off(intent: Intent, reason: str) -> Step:
    return Step(intent.machine, intent.owner.partition("/")[2], TakeOff(intent.mark, reason, intent.owner))
