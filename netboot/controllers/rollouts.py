"""Drives rollouts: looks at their machines every few seconds, and writes down what became of them.

Each look is one transaction, from what was written before to what is true now, so that a program that ends at any point
of it goes on where it was. A channel is moved in the very transaction that ends its rollout: moving it again changes
nothing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from images.errors import ImageError
from netboot.controllers.rollout_words import noted, status_of, summed_up, tell, tell_undone, undone_now
from netboot.controllers.watching import unheard
from netboot.lifecycle.budget import by_whom
from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.control_planes import ControlPlanes, hindrances
from netboot.lifecycle.errors import CannotTellError, RolloutRefusedError
from netboot.lifecycle.intents import Freezes, Signals, permission
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.renewals import Ledger, Renewals
from netboot.lifecycle.rollout import Renewal, Rollout, RolloutState
from netboot.lifecycle.rollout_batch import turns
from netboot.lifecycle.rollout_engine import World, step
from netboot.lifecycle.rollout_facts import facts_of, near, places_of, with_past
from netboot.lifecycle.rollout_member import due, turn_came
from netboot.lifecycle.rollout_store import Members, Note, RolloutStore
from netboot.lifecycle.rollout_undo import no_way_back
from netboot.lifecycle.seen_time import SeenTime
from netboot.lifecycle.snapshot import Snapshot
from netboot.status.controllers import LifecycleStatus, RolloutsStatus, RolloutStatus

KEEP_MS = 10_000
"""How often a rollout's clock is written down where nothing else is: a crash sets its deadlines back by so much."""
STANDS_STILL = "it stands still"
UNJUDGED = f"{STANDS_STILL}: not all machines have been judged since the start"


class RolloutController:
    """`step` every few seconds. `judged(names)`: what was found of machines; `published()`: the snapshot in force;
    `lifecycle()`: what the lifecycle's loop said last; `channel(name)`: where one points; `complete(rollout)`: that its
    channel points to its image; both raise images.errors.ImageError, the latter CannotTellError, too. `freezes`,
    `signals`: whether anything may begin; `out()`: machines that are out of service, None: not all were judged since
    the start; `unusable(image)`: why it cannot be used, None: it can; `cause()`: why failures may be a matter of the
    fleet; `control`: how control planes are; `numbers`: of those boots that are known, as `States` has it."""

    def __init__(
        self,
        store: RolloutStore,
        judged: Callable[[Sequence[str] | None], Mapping[str, Judged]],
        published: Callable[[], Snapshot | None],
        lifecycle: Callable[[], LifecycleStatus | None],
        channel: Callable[[str], str | None],
        complete: Callable[[Rollout], object],
        freezes: Freezes,
        signals: Signals,
        clock: Clock,
        up_ms: Callable[[], int],
        renewals: Renewals,
        out: Callable[[], Collection[str] | None],
        unusable: Callable[[str], str | None],
        cause: Callable[[], str],
        control: ControlPlanes,
        numbers: Callable[[Sequence[str]], Mapping[str, tuple[int, int]]],
    ) -> None:
        self._store, self._judged, self._published, self._lifecycle = store, judged, published, lifecycle
        self._channel, self._complete, self._clock, self._up_ms = channel, complete, clock, up_ms
        self._freezes, self._signals, self._renewals, self._out = freezes, signals, renewals, out
        self._unusable, self._cause, self._control, self._numbers = unusable, cause, control, numbers
        self._undone = set[int]()
        """Rollouts that undid themselves, of which this process has told."""
        self._refused: Mapping[str, str] = {}
        self._ledger = Ledger()
        self._turns: dict[int, Mapping[str, str]] = {}
        """Of each rollout the machines whose turn it is, with by whose word."""
        self._clocks: dict[int, SeenTime] = {}
        self._status: tuple[RolloutStatus, ...] = ()
        self._problem = ""
        self._unseeing: dict[int, str] = {}
        """Rollouts whose machines the last look could not see, and why."""
        self._led = False
        """Whether it drove them in the last look."""
        self.unable = ""
        """What kept the last look from driving any that is under way; "": nothing."""

    def step(self, *, leads: bool = True) -> None:
        """Look at every rollout that is under way. `leads` False: another replica drives them, and nothing is done."""
        self.unable = ""
        try:
            self._step(leads=leads)
        except CannotTellError as error:
            self._problem = self.unable = str(error)

    def status(self) -> RolloutsStatus:
        """For `/readyz` and metrics."""
        return RolloutsStatus(
            at_ms=self._clock.now_ms(), problem=self._problem, rollouts=self._status, undone=len(self._undone)
        )

    def _step(self, *, leads: bool) -> None:
        if leads and not self._led:
            self._store.refresh()
        self._led = leads
        self._problem = self.unable = self._store.behind()
        if not leads:
            self.unable = self.unable or next(iter(self._store.hidden()), "")
            self._follow()
            return
        if self.unable:
            return
        snapshot, under_way = self._published(), self._store.under_way()
        numbers = {each.number for each in under_way}
        self._clocks = {number: clock for number, clock in self._clocks.items() if number in numbers}
        if snapshot is None:
            self.unable = "nothing has been published yet"
            return
        self._ledger = self._renewals.ledger()
        self._turns = {number: taken for number, taken in self._turns.items() if number in numbers}
        wanted: dict[str, Renewal] = {}
        said = {each.number: each for each in self._status}
        problems: dict[int, str] = {}
        self._unseeing = {}
        for rollout in under_way:
            try:
                after, members, may_begin = self._drive(rollout.number, snapshot)
            except (CannotTellError, ImageError, RolloutRefusedError) as error:  # the others go on
                problems[rollout.number] = f"rollout {rollout.number} of channel {rollout.channel}: {error}"
                continue
            said[rollout.number] = status_of(after, members)
            self._turns[rollout.number] = turns(after, members)
            wanted |= _renewals(after, members, snapshot, may_begin=may_begin)
        self._status = tuple(said[each.number] for each in under_way if each.number in said)
        self._problem = "; ".join(problems.values())
        stand, hidden = self._unseeing | problems, self._store.hidden()
        self.unable = next(iter((*hidden, *stand.values())), "") if hidden or stand.keys() >= numbers else ""
        self._refused = self._renewals.want(wanted, self._ledger, problems.keys())

    def _follow(self) -> None:
        """What is known of the moment in which this replica led is of no use to it when it leads again."""
        self._clocks, self._turns, self._refused, self._ledger = {}, {}, {}, Ledger()
        summed = [self._store.summed(each.number) for each in self._store.under_way()]
        self._status = tuple(summed_up(each) for each in summed if each.rollout.under_way)

    def _drive(self, number: int, snapshot: Snapshot) -> tuple[Rollout, Members, bool]:
        seen: Members = {}
        may_begin = False

        def look(rollout: Rollout, members: Members) -> tuple[Rollout, Members]:
            nonlocal seen, may_begin
            if not rollout.under_way:  # it was ended meanwhile
                seen = members
                return rollout, members
            world = self._world(rollout, members, snapshot)
            may_begin = world.seeing and not world.withheld
            after, seen = self._look(rollout, members, world)
            return after, seen

        def note(before: Rollout, now: Rollout) -> Note | None:
            return noted(before, now, self._clock.now_ms())

        after = self._store.change(number, look, note)
        if after.verdict and number not in self._undone:  # now, or when a process before this one was killed
            self._undone.add(number)
            tell_undone(after)
        return after, seen, may_begin

    def _world(self, rollout: Rollout, members: Members, snapshot: Snapshot) -> World:
        all_count = rollout.strategy.per_rack is not None or rollout.strategy.auto_undo  # for that nobody takes back
        out = self._out() if all_count else ()
        unseen = self._unseen(snapshot, members) or (UNJUDGED if out is None else "")
        if unseen:
            self._unseeing[rollout.number] = unseen
        judged = self._judged(list(members))
        facts = facts_of(snapshot, rollout.channel, members, judged, self._ledger.orders)
        others = [taken.items() for number, taken in self._turns.items() if number != rollout.number]
        by = dict(chain(*others)) | by_whom(self._ledger.drains, self._ledger.intents)
        return World(
            facts=with_past(facts, members, self._numbers),
            by=by,
            near=near(snapshot, members, out or (), by),
            seeing=not unseen,
            unseen=unseen,
            obstacle=self._obstacle(rollout, members, snapshot),
            refused=self._refused,
            withheld=self._withheld(snapshot),
            control=hindrances(members, snapshot.inventory.machines, self._control, self._judged, by),
        )

    def _look(self, rollout: Rollout, members: Members, world: World) -> tuple[Rollout, Members]:
        clock = self._clocks.setdefault(rollout.number, SeenTime({"": rollout.clock_ms}, self._up_ms()))
        clock.look([""] if world.seeing else [], self._up_ms())
        looked = rollout.model_copy(update={"clock_ms": max(rollout.clock_ms, clock.values[""])})
        after, now = step(looked, members, world)
        if undone_now(looked, after) and (kept := self._kept(rollout, members)):
            after, now = step(looked, members, replace(world, kept=kept))
        changed = [name for name, each in now.items() if each is not members[name]]
        if after == looked and not changed and looked.clock_ms - rollout.clock_ms < KEEP_MS:
            return rollout, members
        tell(looked, after, [now[name] for name in changed])
        if not after.under_way:
            if after.state is RolloutState.COMPLETE:
                self._complete(rollout)
            after = after.model_copy(update={"ended_ms": self._clock.now_ms()})
        return after, now

    def _kept(self, rollout: Rollout, members: Members) -> str:
        """Why a rollout may not be undone by itself, though its image seems bad."""
        try:
            return self._cause() or no_way_back(rollout, members, self._unusable)
        except (CannotTellError, ImageError) as error:
            return str(error)

    def _unseen(self, snapshot: Snapshot, members: Members) -> str:
        """Why what was found of these machines may not be how they are (rule L11 of the lifecycle); empty: it is."""
        said = self._lifecycle()
        if why := unheard(said, self._up_ms()):
            return f"{STANDS_STILL}: {why}"
        assert said is not None  # or it is not heard
        places = sorted(place.rstrip("/") for place in places_of(snapshot, members) & set(said.unseen))
        return f"{STANDS_STILL}: {', '.join(places)} cannot be looked at" if places else ""

    def _withheld(self, snapshot: Snapshot) -> str:
        """Why nothing may begin now, by a freeze, a signal from outside or the maintenance windows."""
        said = permission(self._freezes, self._signals, snapshot.inventory.maintenance, self._clock.now_ms())
        return "" if said.may else f"nothing begins: {said.reason}"

    def _obstacle(self, rollout: Rollout, members: Members, snapshot: Snapshot) -> str:
        """Why it cannot go on, whatever its machines do."""
        channel = next((each for each in snapshot.inventory.channels if each.name == rollout.channel), None)
        if channel is None:
            return "" if rollout.undoing else f"the inventory has no channel {rollout.channel} any more"
        if channel.image is not None:
            return f"channel {rollout.channel} is pinned to {channel.image[:12]} in the inventory now"
        bad = snapshot.unusable_images
        if rollout.undoing:  # what is fetched meanwhile is no reason, so it is asked once more
            return no_way_back(rollout, members, lambda image: self._unusable(image) if image in bad else None)
        if (now := self._channel(rollout.channel)) not in (rollout.base, rollout.image):
            return f"channel {rollout.channel} was moved to {(now or 'nothing')[:12]} meanwhile"
        if rollout.image in bad and (why := self._unusable(rollout.image)):  # what is fetched meanwhile is no reason
            return f"the image cannot be used: {why}"
        return ""


def _renewals(rollout: Rollout, members: Members, snapshot: Snapshot, *, may_begin: bool) -> dict[str, Renewal]:
    if rollout.on_next_boot or rollout.state is not RolloutState.RUNNING:
        return {}
    names = due(rollout, turn_came(members), snapshot.assigned)
    return {name: Renewal(rollout, members[name].boot, may_begin) for name in names}
