"""What is to be done so that what objects declare is held (`netboot.lifecycle.holds`), what became of each, and what
stays held of which nobody can tell whether it is meant still. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from netboot.lifecycle.holds import (
    Hold,
    HoldObject,
    HoldSaid,
    Why,
    former_owner_of,
    is_object,
    of_owner,
    owner_of,
    shown,
    who_of,
)
from netboot.lifecycle.intents import DeclaredBy, Intent, Order, PutOn, TakeOff
from netboot.lifecycle.transitions import Mark


class Step(NamedTuple):
    """One thing to do. `name`, `uid`: of the object by which it is so, or was; "": not known."""

    machine: str
    name: str
    uid: str
    order: Order


class Machines(NamedTuple):
    """Of the inventory in force: their names, and former name → the name of now."""

    names: Set[str]
    present: Mapping[str, str]


class Place(NamedTuple):
    """Whose objects are followed: of that namespace. `of`: the uids of it and of the definition; "": not known."""

    namespace: str
    of: str


def steps(
    objects: Iterable[HoldObject],
    standing: Sequence[Intent],
    place: Place,
    machines: Machines,
    before: Mapping[str, HoldSaid],
    now_ms: int,
) -> list[Step]:
    """What is to be done so that what stands is what the objects say. `standing`: of all owners; `before`: what was
    said of them last.

    Of one that cannot be read, or names a machine that there is not, what it held stays held: nobody said that it is to
    be let go. A machine that has another name now is meant by the one before, too, and stays so for as long as it is
    the same object, whoever has that name afterwards. One that went is believed to be deleted where it was of this very
    namespace and definition.
    """
    ours = [intent for intent in standing if is_object(intent)]
    by_owner = _by_owner(ours)
    found, there = list[Step](), set[str]()
    for each in objects:
        owner, hold, said_of = owner_of(place.namespace, each.name), each.hold, before.get(each.name)
        there.add(owner)
        own = [one for one in by_owner[owner] if _is_its(one, each, place)]
        machine = _machine(each, machines, said_of, own)
        if hold is None or machine is None:
            continue
        same = said_of is not None and said_of.uid == each.uid
        former = [one for one in by_owner[former_owner_of(each.name)] if same or one.machine == machine]
        if _ended(hold, now_ms):
            found += [_off(intent, f"{shown(each.name)} ended at {hold.until}") for intent in (*own, *former)]
            continue
        order = _order(each, hold, owner, place)
        if not any(_same(intent, machine, order, who_of(each)) for intent in own):
            found.append(Step(machine, each.name, each.uid, order))
        found += [_off(one, f"{shown(each.name)} is of {machine} now") for one in own if one.machine != machine]
        found += [_off(one, f"{shown(each.name)} holds as {owner} now") for one in former]
    gone = (one for one in ours if one.owner not in there and _was_of(one, place))
    return found + [_off(one, f"{_of(one)} was deleted") for one in gone]


def said(
    objects: Iterable[HoldObject],
    standing: Sequence[Intent],
    place: Place,
    machines: Machines,
    before: Mapping[str, HoldSaid],
    now_ms: int,
) -> dict[str, HoldSaid]:
    """What became of each, once `steps` are done, by what stood before them."""
    by_owner = _by_owner(standing)
    return {
        each.name: _said(each, machines, before.get(each.name), by_owner[owner_of(place.namespace, each.name)], now_ms)
        for each in objects
    }


def unaccounted(
    objects: Iterable[HoldObject], standing: Sequence[Intent], place: Place, due: Iterable[Step]
) -> list[str]:
    """What stays held, once the steps that are `due` are done, by objects that are not there, and were of another
    namespace or definition, or of which that is not known: in words, with what to do."""
    there = {owner_of(place.namespace, each.name): each for each in objects}
    going = {(step.machine, step.order.owner) for step in due}
    ours = [
        one for one in standing if is_object(one) and not (one.owner in there and _is_its(one, there[one.owner], place))
    ]
    return [_unaccounted(one, place) for one in ours if (one.machine, one.owner) not in going]


def _unaccounted(intent: Intent, place: Place) -> str:
    namespace, name = of_owner(intent.owner)
    stays = f"{intent.machine} stays held by {shown(name)}"
    if namespace == place.namespace:
        return (
            f"{stays}, which went with its namespace, or with the definition of Holds: apply it again, and where it is "
            "not meant any more delete it when it holds"
        )
    where = f" of namespace {namespace}, which is not followed" if namespace else ", of which no namespace is known"
    return f"{stays}{where}: `netboot machine unhold {intent.machine}` lets it go"


def _by_owner(standing: Iterable[Intent]) -> Mapping[str, list[Intent]]:
    found = defaultdict[str, list[Intent]](list)
    for intent in standing:
        found[intent.owner].append(intent)
    return found


def _order(each: HoldObject, hold: Hold, owner: str, place: Place) -> PutOn:
    declared = DeclaredBy(of=place.of, uid=each.uid, machine=hold.machine)
    return PutOn(Mark.HELD, hold.reason, hold.until_ms, owner, exactly=True, object=declared)


def _is_its(intent: Intent, each: HoldObject, place: Place) -> bool:
    """Whether what is held under this object's name is its own, or of one before it that was deleted. One that went
    with another namespace or definition was not, and lets nobody go."""
    return intent.object is None or intent.object.uid == each.uid or _was_of(intent, place)


def _was_of(intent: Intent, place: Place) -> bool:
    """Whether the object by which it is was of this namespace and definition."""
    return intent.object is not None and bool(place.of) and intent.object.of == place.of


def _said(
    each: HoldObject, machines: Machines, before: HoldSaid | None, own: Sequence[Intent], now_ms: int
) -> HoldSaid:
    if before is not None and before.uid != each.uid:
        before = None
    machine = _machine(each, machines, before, own)
    why, message = _word(each, machine, _meant(each, before, own), now_ms)
    since = before.since_ms if before is not None and before.why == why else now_ms
    by_it = (before.machine, before.by) if before is not None else ("", "")
    named, by = (each.hold.machine, each.hold.by or "") if each.hold is not None else by_it
    held = machine or (before.held if before is not None and before.machine == named else "")
    return HoldSaid(
        uid=each.uid,
        machine=named,
        held=held,
        by=by,
        why=why,
        message=message,
        since_ms=since,
        generation=each.generation,
    )


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


def _machine(each: HoldObject, machines: Machines, before: HoldSaid | None, own: Sequence[Intent]) -> str | None:
    """Which is meant; None: none that there is."""
    name = _meant(each, before, own)
    return name if name in machines.names else machines.present.get(name)


def _meant(each: HoldObject, before: HoldSaid | None, own: Sequence[Intent]) -> str:
    """The one that this very object holds, or held last, by its name of then, else the one that it names; "": nobody
    can read it. What is kept with the hold comes before what was said."""
    named = each.hold.machine if each.hold is not None else ""
    for one in own:
        if one.object is not None and (one.object.uid, one.object.machine) == (each.uid, named):
            return one.machine
    return named if before is None or (before.uid, before.machine) != (each.uid, named) else before.held or named


def _ended(hold: Hold, now_ms: int) -> bool:
    return hold.until_ms is not None and hold.until_ms <= now_ms


def _same(intent: Intent, machine: str, order: PutOn, who: str) -> bool:
    has = intent.machine, intent.mark, intent.reason, intent.until_ms, intent.who, intent.object
    return has == (machine, order.mark, order.reason, order.until_ms, who, order.object)


def _of(intent: Intent) -> str:
    return shown(of_owner(intent.owner)[1])


def _off(intent: Intent, reason: str) -> Step:
    uid = intent.object.uid if intent.object is not None else ""
    return Step(intent.machine, of_owner(intent.owner)[1], uid, TakeOff(intent.mark, reason, intent.owner))
