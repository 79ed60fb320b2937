"""What becomes of a rollout with the facts of a moment. Pure: the same rollout and facts come to the same.

A machine counts when it is in service with the image. Nothing leaves that order: whatever is told, however often and
late, and wherever the program ended before. Deadlines are measured by the rollout's clock, which stands still while
machines cannot be seen.
"""

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field

from netboot.lifecycle.rollout import MOVING, SETTLED, Fact, Member, MemberState, Rollout, RolloutState, Stage
from netboot.lifecycle.rollout_batch import Batch, racks_of, waiting
from netboot.lifecycle.rollout_member import Moment, after

TWO = 2
"""Machines, and racks, that a verdict on an image needs."""


@dataclass(frozen=True, slots=True)
class World:
    """`seeing`: whether facts are fresh; else nobody is late and nobody's turn comes, and `unseen` says why.
    `obstacle`: why the rollout cannot go on, in words. `refused`: machine → why it will not be rebooted.
    `withheld`: why nobody's turn may come now, though nothing is wrong."""

    facts: Mapping[str, Fact]
    seeing: bool = True
    obstacle: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    withheld: str = ""
    unseen: str = ""


@dataclass(slots=True)
class _Course:
    """One step on its way."""

    rollout: Rollout
    members: dict[str, Member]
    world: World

    def of(self, *states: MemberState) -> list[Member]:
        return [each for each in self.members.values() if each.state in states]

    def out(self, member: Member) -> bool:
        """Whether it fills a place of the budget."""
        fact = self.world.facts.get(member.machine)
        return member.state in MOVING or fact is None or not fact.up


def step(rollout: Rollout, members: Mapping[str, Member], world: World) -> tuple[Rollout, dict[str, Member]]:
    """The rollout and its members after a look at the facts; the very same members where nothing changed.
    Only of a rollout under way: one that has ended is looked at no more."""
    moment = Moment(rollout, world.seeing)
    course = _Course(
        rollout,
        {
            name: after(each, world.facts.get(name), moment, world.refused.get(name, ""))
            for name, each in members.items()
        },
        world,
    )
    _note_racks(course)
    if rollout.state is RolloutState.RUNNING and world.seeing:
        _go_on(course)
    elif rollout.state is RolloutState.RUNNING:
        _say(course, world.unseen)
    return course.rollout, course.members


def _say(course: _Course, why: str) -> None:
    """What its status says of it, while it is not stopped."""
    if course.rollout.why != why:
        course.rollout = course.rollout.model_copy(update={"why": why})


def _note_racks(course: _Course) -> None:
    """Machines may leave, and with them the second rack, before the canaries have proved the image."""
    rollout = course.rollout
    there = [each for each in course.members.values() if each.state is not MemberState.LEFT]
    if not (rollout.rolling or rollout.undoing or rollout.unproven) and len(racks_of(there)) < TWO:
        course.rollout = rollout.model_copy(update={"unproven": True})


def _go_on(course: _Course) -> None:
    if stop := _stop(course):
        _pause(course, stop)
        return
    ended, failed, done = _ended(course), course.of(MemberState.FAILED), course.of(MemberState.DONE)
    if ended is RolloutState.COMPLETE and len(failed) > len(done):
        _pause(course, f"{len(failed)} machines failed, and {len(done)} are in service with it: undo it")
        return
    if ended:
        course.rollout = course.rollout.model_copy(update={"state": ended, "blocked": None, "why": _summary(course)})
        return
    if not course.rollout.undoing and not course.rollout.rolling and _proved(course):
        course.rollout = course.rollout.model_copy(update={"rolling": True})
    _say(course, course.world.withheld)
    if course.world.withheld:  # nor is it blocked: it is told when it may go on
        course.rollout = course.rollout.model_copy(update={"blocked": None})
        going = {name for name, fact in course.world.facts.items() if fact.stage is not Stage.NONE}
        course.members = withdrawn(course.rollout, course.members, going)
        return
    course.members |= Batch(course.rollout, course.members, course.world.facts).crowded()
    begun = Batch(course.rollout, course.members, course.world.facts).begin()
    course.members |= begun
    _note_standstill(course, moving=bool(begun) or bool(course.of(*MOVING)))


def _pause(course: _Course, why: str) -> None:
    """Nobody's turn comes any more; who was not rebooted yet boots what it had."""
    course.rollout = course.rollout.model_copy(update={"state": RolloutState.PAUSED, "why": why, "blocked": None})
    course.members = withdrawn(course.rollout, course.members)


def withdrawn(rollout: Rollout, members: Mapping[str, Member], going: Container[str] = ()) -> dict[str, Member]:
    """Members of a rollout that begins nothing: those that were not rebooted yet wait again, but for those `going`,
    which goes on to its end. Who is brought back to what it had stays assigned to that."""
    return {
        name: waiting(rollout, each) if each.state is MemberState.ASSIGNED and name not in going else each
        for name, each in members.items()
    }


def _stop(course: _Course) -> str:
    """Why it has to stop, in words; empty: it has not."""
    rollout = course.rollout
    failed = [each for each in course.of(MemberState.FAILED) if not each.accepted]
    if why := course.world.obstacle or _in_vain(course):
        return why
    if not failed or rollout.undoing:
        return ""
    first = f"{failed[0].machine}: {failed[0].why}"
    if rollout.unproven:
        return f"one machine failed, and without a second rack one stops it: {first}"
    canaries = [each for each in failed if each.canary]
    if not rollout.rolling and len(canaries) >= TWO and len(racks_of(canaries)) >= TWO:
        where = f"{len(canaries)} canaries in {len(racks_of(canaries))} racks"
        return f"{where} failed, which is the image's fault; {first}"
    most = max(TWO, Batch(rollout, course.members, course.world.facts).most)
    if len(failed) >= most:
        return f"{len(failed)} machines failed, and {most} stop it; {first}"
    later, served = _behind_canaries(failed), _behind_canaries(course.of(MemberState.DONE))
    if rollout.rolling and len(later) >= max(TWO, len(served)):  # whatever the budget: it may be the whole fleet
        return f"{len(later)} machines failed after the canaries, and {len(served)} came into service with it; {first}"
    return ""


def _in_vain(course: _Course) -> str:
    """Whether orders come to nothing: whoever is drained and not rebooted is disturbed for nothing."""
    vain = [each for each in course.of(MemberState.SKIPPED) if each.undone and not each.accepted]
    most = Batch(course.rollout, course.members, course.world.facts).most if course.rollout.rolling else TWO
    if len(vain) < max(TWO, most):
        return ""
    return f"{len(vain)} machines were not rebooted, and {max(TWO, most)} stop it; {vain[0].machine}: {vain[0].why}"


def _behind_canaries(members: list[Member]) -> list[Member]:
    return [each for each in members if not each.canary]


def _ended(course: _Course) -> RolloutState | None:
    """Whether every machine is where it can be brought: those that are out of service for reasons of their own boot
    what the channel points to then, when they come."""
    open_ = [each for each in course.members.values() if each.state not in SETTLED]
    if any(each.state in MOVING or not course.out(each) for each in open_):
        return None
    if course.rollout.undoing:
        return RolloutState.UNDONE
    if len(course.of(MemberState.LEFT)) == len(course.members):
        return RolloutState.CANCELLED
    baked = course.rollout.rolling or _proved(course)
    return RolloutState.COMPLETE if baked and course.of(MemberState.DONE) else None


def _proved(course: _Course) -> bool:
    """Whether the canaries are in service with the image, for as long as they have to be."""
    rollout, strategy = course.rollout, course.rollout.strategy
    canaries = [each for each in course.members.values() if each.canary and each.state not in _OUT_OF_IT]
    tried = canaries or course.of(MemberState.DONE)
    if not tried or any(each.state is not MemberState.DONE for each in canaries):
        return False
    waiting = [each for each in course.of(MemberState.WAITING) if not course.out(each)]
    if waiting and len(canaries) < strategy.canary:
        return False
    if not rollout.unproven and len(racks_of(course.of(MemberState.DONE))) < TWO:
        return False
    return rollout.clock_ms - max(each.since for each in tried) >= strategy.bake * 1000


_OUT_OF_IT = (MemberState.FAILED, MemberState.SKIPPED, MemberState.LEFT)


def _note_standstill(course: _Course, *, moving: bool) -> None:
    """Where no turn comes and nobody is on the way, for as long as a machine may take, somebody has to look."""
    rollout = course.rollout
    baking = not rollout.undoing and not rollout.rolling and course.of(MemberState.DONE) and _has_canaries(course)
    if moving or baking:
        course.rollout = rollout.model_copy(update={"blocked": None}) if rollout.blocked is not None else rollout
        return
    since = rollout.clock_ms if rollout.blocked is None else rollout.blocked
    if rollout.clock_ms - since >= rollout.strategy.deadline * 1000:
        _pause(course, _blocked(course))
    elif rollout.blocked is None:
        course.rollout = rollout.model_copy(update={"blocked": since})


def _has_canaries(course: _Course) -> bool:
    """Whether there are all the canaries that are wanted, so that only time is."""
    canaries = [each for each in course.of(MemberState.DONE) if each.canary]
    left = [each for each in course.of(MemberState.WAITING) if not course.out(each)]
    enough = len(canaries) >= course.rollout.strategy.canary or not left
    return enough and (course.rollout.unproven or len(racks_of(course.of(MemberState.DONE))) >= TWO)


def _blocked(course: _Course) -> str:
    out = [each.machine for each in course.members.values() if each.state is not MemberState.LEFT and course.out(each)]
    most = Batch(course.rollout, course.members, course.world.facts).most
    if not course.of(MemberState.DONE, MemberState.WAITING):
        return "no machine came into service with it"
    unknown = [name for name in out if name not in course.world.facts]
    of_these = f"; of these no boot is known: {named(unknown)}" if unknown else ""
    if len(out) >= most:
        return f"out of service are {len(out)}, of {most} that may be: {named(out)}{of_these}"
    if out and course.rollout.strategy.per_rack is not None:
        return f"of each rack as many machines are out of service as may be: {named(out)}"
    return "no machine of a second rack is in service, to try the image on"


def named(machines: Collection[str], most: int = 3) -> str:
    """The first few of them."""
    first = sorted(machines)[:most]
    return ", ".join(first) + (f" and {len(machines) - most} more" if len(machines) > most else "")


def _summary(course: _Course) -> str:
    counts = {state: len(course.of(state)) for state in MemberState}
    said = [f"{count} {state}" for state, count in counts.items() if count]
    return ", ".join(said)
