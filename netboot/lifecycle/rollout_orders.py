"""What operators ask of rollouts: start, pause, resume, undo; and the end that `channel set` is to one. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from images.values.faults import first_few
from netboot.lifecycle.control_planes import LABEL
from netboot.lifecycle.errors import RolloutRefusedError
from netboot.lifecycle.published import View
from netboot.lifecycle.rollout import APART, Assigned, Fact, Member, MemberState, Rollout, RolloutState
from netboot.lifecycle.rollout_batch import racks_of, units_of, unnamed
from netboot.lifecycle.rollout_engine import withdrawn
from netboot.lifecycle.rollout_undo import brought_back
from netboot.lifecycle.snapshot import ImageFacts
from netboot.machines.strategy import Strategy
from netboot.machines.values import Machine

BY_SOMEBODY = "with `--on-next-boot` machines are assigned the image, a few at a time, and somebody has to reboot them"
Members = dict[str, Member]


class Wish(NamedTuple):
    """What an operator asks for. `named`: machines of a control plane that are to go too."""

    channel: str
    image: ImageFacts
    strategy: Strategy
    on_next_boot: bool
    operator: str
    reason: str
    named: Collection[str] = ()


def begin(
    wish: Wish,
    view: View,
    assigned: Mapping[str, Assigned],
    facts: Mapping[str, Fact],
    base: str | None,
    now_ms: int,
    control: Collection[str] = (),
) -> tuple[Rollout, Members]:
    """A rollout with its machines, as they are now; its number is 0 until it is written down. `assigned`: what earlier
    ones left; `base`: what the channel points to; `control`: machines that are of a control plane.

    Raises:
        RolloutRefusedError: there is nothing to do, nothing to go back to, or a machine could not boot the image.
    """
    if base is None:
        raise RolloutRefusedError(
            f"channel {wish.channel} has no image yet, so there is none to go back to: run `netboot channel set`"
        )
    machines = [each for each in view.snapshot.inventory.machines if _takes_part(view, wish, each, facts)]
    members = {each.name: _member(view, wish, each, assigned, base) for each in machines}
    members |= unnamed(members, control)
    going = partakers(members)
    _named(wish, members, control)
    if not members:
        raise RolloutRefusedError(f"no machine of channel {wish.channel} can boot: each is disabled or retired")
    if not going:
        raise RolloutRefusedError(
            f"all machines of channel {wish.channel} that can boot are of a control plane: --control-plane NAME names "
            "one that is to go, and may be said again"
        )
    if all(each.previous == wish.image.digest for each in going.values()):
        raise RolloutRefusedError(
            f"channel {wish.channel} is that image already: machines that run another take it when they are rebooted "
            f"(`netboot drift`){_others(wish, members)}"
        )
    _bootable(view, wish, [each for each in machines if each.name in going])
    _room_for_domains(wish.strategy, going)
    rollout = Rollout(
        number=0,
        channel=wish.channel,
        image=wish.image.digest,
        image_name=wish.image.name,
        base=base,
        strategy=wish.strategy,
        on_next_boot=wish.on_next_boot,
        unproven=len(racks_of(going.values())) < 2,
        operator=wish.operator,
        reason=wish.reason,
        started_ms=now_ms,
    )
    return rollout, members


def partakers(members: Mapping[str, Member]) -> Members:
    """Those that it brings somewhere."""
    return {name: each for name, each in members.items() if each.state not in APART}


def _member(view: View, wish: Wish, machine: Machine, assigned: Mapping[str, Assigned], base: str) -> Member:
    named = machine.name in wish.named
    by_itself = named or wish.strategy.split_domains
    return Member(
        machine=machine.name,
        rack=machine.rack or "",
        position=machine.position,
        domain="" if by_itself else view.stands(machine).accelerator_domain or "",
        class_name=machine.class_name or "",
        named=named,
        previous=_previous(machine.name, wish.channel, assigned, base),
    )


def _named(wish: Wish, members: Members, control: Collection[str]) -> None:
    for name in sorted(wish.named):
        if name not in members:
            raise RolloutRefusedError(f"{name} is no machine of channel {wish.channel} that can boot")
        if name not in control:
            raise RolloutRefusedError(
                f"{name} is of no control plane: neither the inventory (`node.labels`) nor its Node has {LABEL}; its "
                "turn comes as any other's, without --control-plane"
            )


def _others(wish: Wish, members: Members) -> str:
    kept = [each.machine for each in members.values() if each.previous != wish.image.digest]
    if not kept:
        return ""
    return (
        f"; of a control plane, and kept on another: {first_few(sorted(kept))}: --control-plane names one that is to go"
    )


def another(there: Rollout) -> str:
    """Why none can begin beside one that is under way."""
    said = f"rollout {there.number} of channel {there.channel} is {there.state}"
    return f"{said}: one at a time; let it end, or undo it"


def _takes_part(view: View, wish: Wish, machine: Machine, facts: Mapping[str, Fact]) -> bool:
    fact = facts.get(machine.name)
    of_channel = view.profiles[machine.profile].channel == wish.channel
    return of_channel and machine.enabled and (fact is None or not fact.gone)


def _previous(machine: str, channel: str, assigned: Mapping[str, Assigned], base: str) -> str:
    before = assigned.get(machine)
    return before.image if before is not None and before.channel == channel else base


def _room_for_domains(strategy: Strategy, members: Members) -> None:
    """Whether each domain may be out of service whole, when nobody else is: else its turn could never come."""
    split = "so that its turn comes as a whole, or say --split-domains, if its machines may go one by one"
    most = strategy.budget(len(members))
    for unit in sorted(units_of(members.values()), key=len, reverse=True):  # with the largest all have room
        domain, (rack, count) = unit[0].domain, Counter(each.rack for each in unit).most_common(1)[0]
        if len(unit) > most:
            raise RolloutRefusedError(
                f"accelerator domain {domain} has {len(unit)} machines, and no more than {most} of {len(members)} may "
                f"be out of service: say --max-unavailable {len(unit)} or more, {split}"
            )
        if strategy.per_rack is not None and count > strategy.per_rack:
            where = f"in rack {rack}" if rack else "without a rack"
            raise RolloutRefusedError(
                f"accelerator domain {domain} has {count} machines {where}, and no more than {strategy.per_rack} of a "
                f"rack may be out of service: say --per-rack {count} or more, {split}"
            )


def _bootable(view: View, wish: Wish, machines: list[Machine]) -> None:
    """Whether each machine's script would be one: architecture and command line."""
    other = [each.name for each in machines if each.architecture != wish.image.architecture]
    if other:
        raise RolloutRefusedError(
            f"{wish.image.name} is for {wish.image.architecture}, and not {first_few(sorted(other))}"
        )
    for machine in machines:
        if cut := view.cut(machine, wish.image):
            raise RolloutRefusedError(f"machine {machine.name} would not boot it: {'; '.join(cut)}")


def paused(rollout: Rollout, members: Members, who: str) -> tuple[Rollout, Members]:
    """Nobody's turn comes any more; asked again it changes nothing."""
    _under_way(rollout)
    if rollout.state is RolloutState.PAUSED:
        return rollout, members
    now = {"state": RolloutState.PAUSED, "why": f"paused by {who}", "blocked": None}
    halted = rollout.model_copy(update=now)
    return halted, withdrawn(halted, members)


def resumed(rollout: Rollout, members: Members) -> tuple[Rollout, Members]:
    """It goes on; those that failed until now, or were not rebooted, stop it no more."""
    _under_way(rollout)
    if rollout.state is RolloutState.RUNNING:
        return rollout, members
    accepted = {
        name: each.model_copy(update={"accepted": True}) if each.state is MemberState.FAILED or each.undone else each
        for name, each in members.items()
    }
    return rollout.model_copy(update={"state": RolloutState.RUNNING, "why": "", "blocked": None}), accepted


def undone(rollout: Rollout, members: Members) -> tuple[Rollout, Members]:
    """Every machine boots what it had from now on, and those that run another image are brought back within the
    budgets."""
    if not rollout.under_way:
        raise RolloutRefusedError(
            f"rollout {rollout.number} is {rollout.state}: start one with the image before it, {rollout.base[:12]}"
        )
    if rollout.undoing:
        return resumed(rollout, members)
    return brought_back(rollout, members)


def cancelled(rollout: Rollout, by: str, now_ms: int) -> Rollout:
    """It assigns nothing any more: machines boot what their channel points to. What has ended stays as it is."""
    if not rollout.under_way:
        return rollout
    now = {"state": RolloutState.CANCELLED, "why": by, "blocked": None, "ended_ms": now_ms}
    return rollout.model_copy(update=now)


def _under_way(rollout: Rollout) -> None:
    if not rollout.under_way:
        raise RolloutRefusedError(f"rollout {rollout.number} is {rollout.state}: nothing is under way")
