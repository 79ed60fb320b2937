"""How machines are now, as a rollout wants to know it: by the inventory in force, and by what was found. Pure."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence, Set
from itertools import chain

from netboot.lifecycle.bootid import is_shaped, minted_ms
from netboot.lifecycle.budget import BY_ITSELF, Out, in_service
from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.drains import Reserved
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.rollout import APART, Fact, Member, Stage
from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.values import Machine

_HELD = frozenset({Reason.HELD, Reason.QUARANTINED, Reason.DRAINING, Reason.CORDONED})
"""By operators, or by whoever cordoned its Node."""


def facts_of(
    snapshot: Snapshot,
    channel: str,
    names: Collection[str],
    judged: Mapping[str, Judged],
    orders: Mapping[str, Reserved],
) -> dict[str, Fact]:
    """Of those of `names` that are known: one that was not judged yet, or of which no boot is known (any more: the
    state may be lost, and its Node be Ready), is not in it, unless it is no member any more. `orders`: what stands, by
    machine: who is to be drained is out of service from then on, and not only once that is seen."""
    channels = {profile.name: profile.channel for profile in snapshot.inventory.profiles}
    machines = {machine.name: machine for machine in snapshot.inventory.machines}
    found = {}
    for name in names:
        machine, judgement = machines.get(name), judged.get(name)
        gone = why_gone(machine, channel, channels, retired=_reason(judgement) is Reason.RETIRED)
        if gone:
            found[name] = Fact(up=False, image="", boot="", gone=gone)
        elif judgement is not None and judgement.boot:
            order = orders.get(name)
            stage = _stage(order, judgement)
            up = in_service(judgement) and order is None
            found[name] = Fact(up, judgement.image, judgement.boot, held=_held(judgement, order, stage), stage=stage)
    return found


def with_past(
    facts: Mapping[str, Fact],
    members: Mapping[str, Member],
    numbers: Callable[[Sequence[str]], Mapping[str, tuple[int, int]]],
) -> dict[str, Fact]:
    """The facts, and of each whether it is past: the rollout knows of a later boot, which the replica that drove it had
    heard of and this one has not. `numbers`: as `States` has it."""
    others = {
        name: (fact.boot, last)
        for name, fact in facts.items()
        if fact.boot and (last := members[name].last_boot) not in ("", fact.boot)
    }
    arrived = numbers([*chain(*others.values())]) if others else {}
    past = [name for name, (boot, last) in others.items() if _past(boot, last, arrived)]
    return {**facts, **{name: facts[name]._replace(past=True) for name in past}}


def _past(boot: str, last: str, arrived: Mapping[str, tuple[int, int]]) -> bool:
    """Later is what came to its standing later, in the order in which facts arrived here. Of a boot that was never
    heard of here only the time in its id tells, by the clock of who began it."""
    if last in arrived:
        return boot in arrived and arrived[boot][0] < arrived[last][0]
    return is_shaped(boot) and is_shaped(last) and minted_ms(boot) < minted_ms(last)


def left(
    snapshot: Snapshot, clusters: Set[str], names: Collection[str], judged: Mapping[str, Judged], led: Set[str]
) -> dict[str, str]:
    """Which of `names` are not there to be drained any more, and why. `led`: of the clusters those whose orders are
    carried out here: whom another replica drains it knows itself, by a newer inventory, say."""
    machines = {machine.name: machine for machine in snapshot.inventory.machines}
    found = {}
    for name in names:
        machine = machines.get(name)
        if machine is None or machine.cluster not in clusters:
            if led >= clusters:
                found[name] = "the inventory no longer has it" if machine is None else "it joins no cluster any more"
        elif machine.cluster in led and _reason(judged.get(name)) is Reason.RETIRED:
            found[name] = "it is retired"
    return found


def near(
    snapshot: Snapshot, members: Mapping[str, Member], out: Container[str], by: Mapping[str, str]
) -> dict[str, Out]:
    """Machines of the members' racks that are out of service and no members. `out`: those that are, by conditions;
    `by`: by whose word. Those without a rack are near nobody."""
    there = {name for name, each in members.items() if each.state not in APART}
    racks = {members[name].rack for name in there}
    return {
        machine.name: Out(machine.rack, by.get(machine.name, BY_ITSELF))
        for machine in snapshot.inventory.machines
        if (machine.name in by or machine.name in out) and machine.name not in there
        if machine.rack and machine.rack in racks and machine.enabled
    }


def places_of(snapshot: Snapshot, names: Iterable[str]) -> set[str]:
    """The clocks of `SeenTime` that count for these machines: where their reports and their Nodes are seen."""
    wanted = set(names)
    machines = [machine for machine in snapshot.inventory.machines if machine.name in wanted]
    return {"reports"} | {f"nodes/{machine.cluster}/{machine.class_name or ''}" for machine in machines}


def why_gone(machine: Machine | None, channel: str, channels: Mapping[str, str], *, retired: bool) -> str:
    """Why a machine boots no image of the channel, in words; "": it does. `channels`: by profile."""
    if machine is None:
        return "the inventory no longer has it"
    if channels[machine.profile] != channel:
        return f"it uses channel {channels[machine.profile]} now"
    if not machine.enabled:
        return "it is disabled"
    return "it is retired" if retired else ""


def _stage(order: Reserved | None, judged: Judged) -> Stage:
    if order is None or order.drain.what != "reboot":
        return Stage.NONE
    reachable = judged.condition(ConditionType.REACHABLE)
    there = reachable is not None and reachable.reason is Reason.NODE_READY
    went = order.drain.boot != judged.boot or (order.told and not there)
    return Stage.GONE if went else Stage.DRAINING


def _held(judged: Judged, order: Reserved | None, stage: Stage) -> str:
    """Who is rebooting is `Draining` still, and nobody keeps it from coming back."""
    reason = _reason(judged)
    if reason is Reason.DRAINING or (order is not None and reason not in _HELD):
        return "" if stage is Stage.GONE else "it is draining"
    return f"it is {reason.value.lower()}" if reason in _HELD else ""


def _reason(judged: Judged | None) -> Reason | None:
    service = judged.condition(ConditionType.IN_SERVICE) if judged is not None else None
    return service.reason if service is not None else None
