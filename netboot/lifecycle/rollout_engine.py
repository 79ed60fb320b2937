"""What becomes of a rollout with the facts of a moment. Pure: the same rollout and facts come to the same.

A machine counts when it is in service with the image. Nothing leaves that order: whatever is told, however often and
late, and wherever the program ended before. Deadlines are measured by the rollout's clock, which stands still while
machines cannot be seen.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from images.values.faults import first_few
from netboot.lifecycle.budget import Out
from netboot.lifecycle.rollout import APART, MOVING, SETTLED, Fact, Member, MemberState, Rollout, RolloutState, Stage
from netboot.lifecycle.rollout_batch import Batch, racks_of, unnamed, waiting
from netboot.lifecycle.rollout_member import Moment, after
from netboot.lifecycle.rollout_undo import brought_back
from netboot.lifecycle.rollout_verdict import TWO, Stop, outnumbered, stop


@dataclass(frozen=True, slots=True)
class World:
    """`seeing`: whether facts are fresh; else nobody is late and nobody's turn comes, and `unseen` says why.
    `obstacle`: why the rollout cannot go on, in words. `refused`: machine → why it will not be rebooted.
    `withheld`: why nobody's turn may come now, though nothing is wrong; `by`, `near`: as `Batch` has them; `kept`: why
    it may not be undone by itself. `control`: of its machines each that is of a control plane, and why it may not go
    out of service now; "": it may."""

    facts: Mapping[str, Fact]
    seeing: bool = True
    obstacle: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    withheld: str = ""
    unseen: str = ""
    by: Mapping[str, str] = field(default_factory=dict)
    near: Mapping[str, Out] = field(default_factory=dict)
    kept: str = ""
    control: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Course:
    """One step on its way."""

    rollout: Rollout
    members: dict[str, Member]
    world: World

    def of(self, *states: MemberState) -> list[Member]:
        return [each for each in self.members.values() if each.state in states]

    @property
    def batch(self) -> Batch:
        """Of how it is now."""
        world = self.world
        return Batch(self.rollout, self.members, world.facts, world.by, world.near, world.control)


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
    course.members |= unnamed(course.members, world.control)
    _note_racks(course)
    if rollout.state is RolloutState.RUNNING:  # seen or not: nobody is told to reboot whose control plane may need it
        course.members |= course.batch.endangering()
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
    there = [each for each in course.members.values() if each.state not in APART]
    if not (rollout.rolling or rollout.undoing or rollout.unproven) and len(racks_of(there)) < TWO:
        course.rollout = rollout.model_copy(update={"unproven": True})


def _go_on(course: _Course) -> None:
    ended = _ended(course)
    through = ended is RolloutState.COMPLETE
    found = stop(course.batch, course.world.obstacle) or (outnumbered(course.batch) if through else None)
    if found is not None:
        _halt(course, found)
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
    course.members |= course.batch.crowded()
    begun = course.batch.begin()
    course.members |= begun
    _say(course, course.batch.waits())
    _note_standstill(course, moving=bool(begun) or bool(course.of(*MOVING)))


def _halt(course: _Course, found: Stop) -> None:
    """It is undone, where that was asked for and the image is why; else it is paused, and waits for somebody."""
    if not (course.rollout.strategy.auto_undo and found.failed):
        _pause(course, found.why + found.advice)
        return
    if kept := found.no_verdict or course.world.kept:
        _pause(course, f"{found.why}; it does not undo itself: {kept}")
    else:
        course.rollout, course.members = brought_back(course.rollout, course.members, found.why)


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


def _ended(course: _Course) -> RolloutState | None:
    """Whether every machine is where it can be brought: those that are out of service for reasons of their own boot
    what the channel points to then, when they come."""
    open_ = [each for each in course.members.values() if each.state not in SETTLED]
    out = course.batch.out
    if any(each.state in MOVING or not out(each) for each in open_):
        return None
    if course.rollout.undoing:
        return RolloutState.UNDONE
    if len(course.of(*APART)) == len(course.members):  # who keeps what it had keeps it, which a cancelled one forgets
        return RolloutState.UNDONE if course.of(MemberState.KEPT) else RolloutState.CANCELLED
    baked = course.rollout.rolling or _proved(course)
    return RolloutState.COMPLETE if baked and course.of(MemberState.DONE) else None


def _proved(course: _Course) -> bool:
    """Whether the canaries are in service with the image, for as long as they have to be."""
    rollout, strategy = course.rollout, course.rollout.strategy
    canaries = [each for each in course.members.values() if each.canary and each.state not in _OUT_OF_IT]
    tried = canaries or course.of(MemberState.DONE)
    if not tried or any(each.state is not MemberState.DONE for each in canaries):
        return False
    out = course.batch.out
    waiting = [each for each in course.of(MemberState.WAITING) if not out(each)]
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
    out = course.batch.out
    left = [each for each in course.of(MemberState.WAITING) if not out(each)]
    enough = len(canaries) >= course.rollout.strategy.canary or not left
    return enough and (course.rollout.unproven or len(racks_of(course.of(MemberState.DONE))) >= TWO)


def _blocked(course: _Course) -> str:
    if not course.of(MemberState.DONE, MemberState.WAITING):
        return "no machine came into service with it"
    if why := course.batch.waits():
        there = [each.machine for each in course.members.values() if each.state not in APART]
        unknown = [name for name in there if name not in course.world.facts]
        return f"{why}; of these no boot is known: {first_few(sorted(unknown))}" if unknown else why
    return "no machine of a second rack is in service, to try the image on"


def _summary(course: _Course) -> str:
    counts = {state: len(course.of(state)) for state in MemberState}
    said = [f"{count} {state}" for state, count in counts.items() if count]
    return ", ".join(said)
