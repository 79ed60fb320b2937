"""What becomes of one machine of a rollout with what is known of it now. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from netboot.lifecycle.rollout import ANEW, Fact, Member, MemberState, Rollout, RolloutState, Stage
from netboot.lifecycle.snapshot import Assignment

AGAIN = 3
"""Boots after one that had come into service with the image; a machine that begins so many does not run it."""


class Moment(NamedTuple):
    """`seeing`: else nobody is late."""

    rollout: Rollout
    seeing: bool

    def goal(self, member: Member) -> str:
        """The image that it is brought to."""
        return goal(self.rollout, member.previous)

    def late(self, member: Member) -> bool:
        """Whether it has been so for longer than it may."""
        return self.seeing and self.rollout.clock_ms - member.since >= self.rollout.strategy.deadline * 1000


def goal(rollout: Rollout, previous: str) -> str:
    """The image to which a machine is brought that booted `previous` before."""
    return previous if rollout.undoing else rollout.image


def turn_came(members: Mapping[str, Member]) -> dict[str, str]:
    """Those that are assigned the image and did not leave service yet: machine → what it booted before."""
    return {name: each.previous for name, each in members.items() if each.state is MemberState.ASSIGNED}


def due(rollout: Rollout, turn: Mapping[str, str], assigned: Mapping[str, Assignment]) -> list[str]:
    """Those of whose turn it is (`turn_came`) that are to be rebooted now: what they are to boot is in the published
    snapshot."""
    return sorted(
        name for name, previous in turn.items() if name in assigned and assigned[name].image == goal(rollout, previous)
    )


def after(member: Member, fact: Fact | None, moment: Moment, refused: str = "") -> Member:
    """The machine after a look at it; the very same where nothing changed. `fact` None: nothing is known of it, and of
    one that is past nothing new, which alters nothing; but by its deadline it is waited for no more."""
    if member.state is MemberState.LEFT:
        if fact is None or fact.gone:
            return member
        member = _back(member, moment)
    if fact is None or (fact.past and not fact.gone):
        return _unheard(member, fact, moment, refused)
    if fact.gone:
        return _to(member, MemberState.LEFT, moment, fact.gone)
    if member.state is MemberState.KEPT:
        return member
    if fact.up and fact.image == moment.goal(member):
        return _in_service(member, fact, moment)
    match member.state:
        case MemberState.ASSIGNED:
            return _assigned(member, fact, moment, refused)
        case MemberState.OUT:
            return _out(member, fact, moment)
        case MemberState.DONE:
            return _returned(member, fact, moment) if fact.up else _left_service(member, moment)
        case _:
            return member


def _back(member: Member, moment: Moment) -> Member:
    """One that had left and is back, as by another name or after a fault of the inventory: its turn comes as if it had
    not had one."""
    return _to(member, MemberState.WAITING, moment).model_copy(
        update={**ANEW, "canary": False, "tries": 0, "boot": "", "accepted": False}
    )


def _in_service(member: Member, fact: Fact, moment: Moment) -> Member:
    """It is in service with the image. A machine that begins one boot after the other since comes into service too,
    again and again, and does not run it."""
    if member.state is MemberState.FAILED and member.again >= AGAIN:
        return member
    again = member.again + (member.served not in ("", fact.boot))
    if member.state is MemberState.DONE and again == member.again:
        return member
    if again >= AGAIN:
        why = f"it began {again} more boots since it came into service with it"
        return _to(member, MemberState.FAILED, moment, why).model_copy(update={"again": again})
    return _to(member, MemberState.DONE, moment).model_copy(update={"served": fact.boot, "again": again})


def _left_service(member: Member, moment: Moment) -> Member:
    """One that ran the image for as long as canaries have to is out for another reason than the image, it seems."""
    proved = moment.rollout.clock_ms - member.since >= moment.rollout.strategy.bake * 1000
    return _to(member, MemberState.OUT, moment).model_copy(update={"proved": member.proved or proved})


def _unheard(member: Member, fact: Fact | None, moment: Moment, refused: str) -> Member:
    """What is told to reboot is so whatever is heard of it."""
    if member.state is MemberState.ASSIGNED:
        return _refused(member, moment, refused) if refused else _unbegun(member, moment)
    lost = member.state is MemberState.OUT and moment.late(member)
    known = "no boot of it is known any more" if fact is None else f"no boot since {member.boot} is known"
    return _to(member, MemberState.SKIPPED, moment, known) if lost else member


def _refused(member: Member, moment: Moment, why: str) -> Member:
    return _to(member, MemberState.SKIPPED, moment, why).model_copy(update={"undone": True})


def _assigned(member: Member, fact: Fact, moment: Moment, refused: str) -> Member:
    if refused:
        return _refused(member, moment, refused)
    if fact.stage is Stage.DRAINING and fact.boot == member.boot:
        return member  # its order ends by itself: the machine is told to reboot, or it is undone
    if not fact.up:
        return _to(member, MemberState.OUT, moment)
    if fact.boot != member.boot:
        return _returned(member, fact, moment)
    return _unbegun(member, moment)


def _unbegun(member: Member, moment: Moment) -> Member:
    """It was not told to reboot yet."""
    if moment.rollout.on_next_boot or not moment.late(member):
        return member
    if member.tries:
        return _to(member, MemberState.SKIPPED, moment, "it was not rebooted in time, twice")
    return member.model_copy(update={"tries": 1, "since": moment.rollout.clock_ms})


def _out(member: Member, fact: Fact, moment: Moment) -> Member:
    if fact.up and fact.boot == member.boot:
        return _to(member, MemberState.ASSIGNED, moment)
    if fact.up:
        return _returned(member, fact, moment)
    if not moment.late(member):
        return member
    if fact.held:
        return _to(member, MemberState.SKIPPED, moment, fact.held)
    if member.proved:
        return _to(member, MemberState.SKIPPED, moment, "it left service after it had run the image for long enough")
    return _to(member, MemberState.FAILED, moment, "it was not back in service in time")


def _returned(member: Member, fact: Fact, moment: Moment) -> Member:
    """It is in service with another image: tried once more."""
    if member.tries:
        why = f"it came back with image {fact.image[:12] or 'unknown'}, twice"
        return _to(member, MemberState.FAILED, moment, why)
    return _to(member, MemberState.ASSIGNED, moment).model_copy(update={"boot": fact.boot, "tries": 1})


def _to(member: Member, state: MemberState, moment: Moment, why: str = "") -> Member:
    if state is MemberState.ASSIGNED and moment.rollout.state is RolloutState.PAUSED:
        state = MemberState.WAITING  # nobody's turn comes
    return member.model_copy(update={"state": state, "since": moment.rollout.clock_ms, "why": why})
