"""What becomes of one machine of a rollout with what is known of it now. Pure."""

from typing import NamedTuple

from netboot.lifecycle.rollout import Fact, Member, MemberState, Rollout, RolloutState


class Moment(NamedTuple):
    """`seeing`: else nobody is late."""

    rollout: Rollout
    seeing: bool

    def goal(self, member: Member) -> str:
        """The image that it is brought to."""
        return member.previous if self.rollout.undoing else self.rollout.image

    def late(self, member: Member) -> bool:
        """Whether it has been so for longer than it may."""
        return self.seeing and self.rollout.clock_ms - member.since >= self.rollout.strategy.deadline * 1000


def after(member: Member, fact: Fact | None, moment: Moment, refused: str = "") -> Member:
    """The machine after a look at it; the very same where nothing changed. `fact` None: nothing is known of it, which
    alters nothing."""
    if member.state is MemberState.LEFT or fact is None:
        return member
    if fact.gone:
        return _to(member, MemberState.LEFT, moment, fact.gone)
    if fact.up and fact.image == moment.goal(member):
        return member if member.state is MemberState.DONE else _to(member, MemberState.DONE, moment)
    match member.state:
        case MemberState.ASSIGNED:
            return _assigned(member, fact, moment, refused)
        case MemberState.OUT:
            return _out(member, fact, moment)
        case MemberState.DONE:
            return _returned(member, fact, moment) if fact.up else _to(member, MemberState.OUT, moment)
        case _:
            return member


def _assigned(member: Member, fact: Fact, moment: Moment, refused: str) -> Member:
    if not fact.up:
        return _to(member, MemberState.OUT, moment)
    if fact.boot != member.boot:
        return _returned(member, fact, moment)
    if moment.rollout.on_next_boot:
        return member
    if refused:
        return _to(member, MemberState.SKIPPED, moment, refused)
    if not moment.late(member):
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
