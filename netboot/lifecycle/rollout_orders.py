"""What operators ask of rollouts: start, pause, resume, undo; and the end that `channel set` is to one. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from netboot.lifecycle.errors import RolloutRefusedError
from netboot.lifecycle.published import View
from netboot.lifecycle.rollout import ANEW, Assigned, Fact, Member, MemberState, Rollout, RolloutState
from netboot.lifecycle.rollout_batch import racks_of
from netboot.lifecycle.rollout_engine import named, withdrawn
from netboot.lifecycle.snapshot import ImageFacts
from netboot.machines.strategy import Strategy
from netboot.machines.values import Machine

BY_SOMEBODY = "with `--on-next-boot` machines are assigned the image, a few at a time, and somebody has to reboot them"
Members = dict[str, Member]


class Wish(NamedTuple):
    """What an operator asks for."""

    channel: str
    image: ImageFacts
    strategy: Strategy
    on_next_boot: bool
    operator: str
    reason: str


def begin(
    wish: Wish, view: View, assigned: Mapping[str, Assigned], facts: Mapping[str, Fact], base: str | None, now_ms: int
) -> tuple[Rollout, Members]:
    """A rollout with its machines, as they are now; its number is 0 until it is written down. `assigned`: what earlier
    ones left; `base`: what the channel points to.

    Raises:
        RolloutRefusedError: there is nothing to do, nothing to go back to, or a machine could not boot the image.
    """
    if base is None:
        raise RolloutRefusedError(
            f"channel {wish.channel} has no image yet, so there is none to go back to: run `netboot channel set`"
        )
    machines = [each for each in view.snapshot.inventory.machines if _takes_part(view, wish, each, facts)]
    members = {
        each.name: Member(
            machine=each.name,
            rack=each.rack or "",
            class_name=each.class_name or "",
            previous=_previous(each.name, wish.channel, assigned, base),
        )
        for each in machines
    }
    if not members:
        raise RolloutRefusedError(f"no machine of channel {wish.channel} can boot: each is disabled or retired")
    if all(each.previous == wish.image.digest for each in members.values()):
        raise RolloutRefusedError(
            f"channel {wish.channel} is that image already: machines that run another take it when they are rebooted "
            "(`netboot drift`)"
        )
    _bootable(view, wish, machines)
    rollout = Rollout(
        number=0,
        channel=wish.channel,
        image=wish.image.digest,
        image_name=wish.image.name,
        base=base,
        strategy=wish.strategy,
        on_next_boot=wish.on_next_boot,
        unproven=len(racks_of(members.values())) < 2,
        operator=wish.operator,
        reason=wish.reason,
        started_ms=now_ms,
    )
    return rollout, members


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


def _bootable(view: View, wish: Wish, machines: list[Machine]) -> None:
    """Whether each machine's script would be one: architecture and command line."""
    other = [each.name for each in machines if each.architecture != wish.image.architecture]
    if other:
        raise RolloutRefusedError(f"{wish.image.name} is for {wish.image.architecture}, and not {named(other)}")
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
    back = rollout.model_copy(update={"undoing": True, "state": RolloutState.RUNNING, "why": "", "blocked": None})
    return back, {name: _back(each, rollout.clock_ms) for name, each in members.items()}


def _back(member: Member, clock_ms: int) -> Member:
    if member.state is MemberState.LEFT:
        return member
    gone = member.state in (MemberState.OUT, MemberState.FAILED)
    state = MemberState.OUT if gone else MemberState.WAITING
    return member.model_copy(
        update={**ANEW, "state": state, "since": clock_ms, "tries": 0, "canary": False, "why": "", "accepted": False}
    )


def cancelled(rollout: Rollout, by: str, now_ms: int) -> Rollout:
    """It assigns nothing any more: machines boot what their channel points to. What has ended stays as it is."""
    if not rollout.under_way:
        return rollout
    now = {"state": RolloutState.CANCELLED, "why": by, "blocked": None, "ended_ms": now_ms}
    return rollout.model_copy(update=now)


def _under_way(rollout: Rollout) -> None:
    if not rollout.under_way:
        raise RolloutRefusedError(f"rollout {rollout.number} is {rollout.state}: nothing is under way")
