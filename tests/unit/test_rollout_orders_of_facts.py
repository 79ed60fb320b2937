"""Whatever happens to machines, in whatever order: never more are out than may be, and it comes to an end."""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from netboot.lifecycle.rollout import APART, Member, MemberState, Rollout, RolloutState, assignments
from netboot.lifecycle.rollout_batch import units_of
from netboot.lifecycle.rollout_orders import paused, resumed, undone
from tests.rollouts import NEW, OLD, OTHER, Fleet, rollout

S = MemberState


class Rollouts(RuleBasedStateMachine):
    """A small fleet, a rollout, and everything that may happen."""

    fleet: Fleet
    looked_at: dict[str, Member] | None = None
    steps = 0
    """Of all together."""

    @initialize(
        racks=st.lists(st.sampled_from("abc"), min_size=2, max_size=12),
        domains=st.lists(st.sampled_from(["", "", "x", "y"]), min_size=12, max_size=12),
        share=st.sampled_from(["1", "2", "3", "25%", "100%"]),
        per_rack=st.sampled_from([None, 1, 2]),
        canary=st.integers(2, 3),
        on_next_boot=st.booleans(),
        rolling=st.booleans(),
        auto_undo=st.sampled_from([True, True, False]),
        control=st.integers(0, 4),
    )
    def begin(
        self,
        racks: list[str],
        domains: list[str],
        share: str,
        per_rack: int | None,
        canary: int,
        on_next_boot: bool,
        rolling: bool,
        auto_undo: bool,
        control: int,
    ) -> None:
        begun = rollout(
            on_next_boot=on_next_boot,
            unproven=len(set(racks)) < 2,
            max_unavailable=share,
            per_rack=per_rack,
            canary=canary,
            auto_undo=auto_undo,
        )
        self.fleet = Fleet.of(begun.model_copy(update={"rolling": rolling}), len(racks), lambda number: racks[number])
        self.fleet.of_domains(domains)
        self.fleet.of_control_plane(*sorted(self.fleet.members)[:control])

    @rule(seconds=st.sampled_from([0, 1, 60, 599, 600]))
    def look(self, seconds: int) -> None:
        before, was, fleet = self.fleet.members, self.fleet.rollout, self.fleet
        fleet.look(seconds)
        self.looked_at = fleet.members
        if fleet.rollout.undoing and not was.undoing:
            self.undid_itself(was)
        begun = [
            name for name, each in fleet.members.items() if each.state is S.ASSIGNED and before[name].state is S.WAITING
        ]
        if not begun or (fleet.rollout.undoing and fleet.rollout.on_next_boot):
            return
        out = [name for name in fleet.members if self._out(name)]
        there = [each for each in fleet.members.values() if each.state not in APART]
        assert len(out) <= fleet.rollout.strategy.budget(len(there))
        if fleet.rollout.unproven:
            assert (sorted(out), len(units_of(fleet.members[name] for name in begun))) == (sorted(begun), 1)
        left = [name for name, each in fleet.members.items() if each.state is S.WAITING and not self._out(name)]
        named = [name for name in begun if fleet.members[name].named]
        assert not named or all(fleet.members[name].named for name in left), "their turn comes behind all others'"
        assert not any(fleet.control[name] for name in named)
        assert not {fleet.members[name].domain for name in begun} & {fleet.members[name].domain for name in left} - {""}
        for name in begun if fleet.rollout.strategy.per_rack else ():
            rack = fleet.members[name].rack
            of_rack = [each for each in out if fleet.members[each].rack == rack]
            assert len(of_rack) <= (fleet.rollout.strategy.per_rack or 0)

    def undid_itself(self, was: Rollout) -> None:
        """Where that was asked for, it went on and could be seen; the clock is the same for all that were away."""
        fleet = self.fleet
        assert (was.strategy.auto_undo, was.state, fleet.seeing) == (True, RolloutState.RUNNING, True)
        gone = [each for each in fleet.members.values() if each.state is S.OUT and each.accepted]
        assert len({each.rack for each in gone}) >= 2
        assert fleet.rollout.verdict

    def _out(self, name: str) -> bool:
        member, machine = self.fleet.members[name], self.fleet.machines[name]
        moving = member.state in (S.ASSIGNED, S.OUT)
        return member.state not in APART and (moving or not machine.known or not machine.up)

    @rule(pick=st.integers(0, 99), image=st.sampled_from([None, OLD, NEW, OTHER]))
    def comes(self, pick: int, image: str | None) -> None:
        self.fleet.come(self._name(pick), image)

    @rule(pick=st.integers(0, 99))
    def leaves(self, pick: int) -> None:
        self.fleet.leave(self._name(pick))

    @rule(one=st.booleans())
    def does_not_come_back(self, one: bool) -> None:
        """All whose turn comes, or one of them, in plain sight."""
        self.fleet.seeing = True
        self.look(0)
        for name in self.fleet.assigned[: 1 if one else None]:
            self.fleet.leave(name)
        for seconds in (1, 600):
            self.look(seconds)

    @rule(pick=st.integers(0, 99))
    def is_back_without_a_boot(self, pick: int) -> None:
        self.fleet.machines[self._name(pick)].up = True

    @rule(pick=st.integers(0, 99), why=st.sampled_from(["", "it is held"]))
    def is_held(self, pick: int, why: str) -> None:
        self.fleet.machines[self._name(pick)].held = why

    @rule(pick=st.integers(0, 99))
    def is_retired(self, pick: int) -> None:
        self.fleet.machines[self._name(pick)].gone = "it is retired"

    @rule(pick=st.integers(0, 99), known=st.booleans())
    def is_known(self, pick: int, known: bool) -> None:
        self.fleet.machines[self._name(pick)].known = known

    @rule(pick=st.integers(0, 99), why=st.sampled_from(["", "without it there is no majority"]))
    def control_plane_is(self, pick: int, why: str) -> None:
        names = sorted(self.fleet.control)
        if names:
            self.fleet.control[names[pick % len(names)]] = why
            self.looked_at = None

    @rule(pick=st.integers(0, 99))
    def is_found_to_be_of_a_control_plane(self, pick: int) -> None:
        self.fleet.control.setdefault(self._name(pick), "")

    @rule(seeing=st.booleans())
    def can_be_seen(self, seeing: bool) -> None:
        self.fleet.seeing = seeing

    @rule(pick=st.integers(0, 99))
    def is_refused(self, pick: int) -> None:
        self.fleet.refused[self._name(pick)] = "its Pods may not be evicted"

    @rule()
    def ends_and_starts_again(self) -> None:
        fleet = self.fleet
        before = fleet.rollout, fleet.members
        fleet.rollout = Rollout.model_validate_json(fleet.rollout.model_dump_json())
        fleet.members = {
            name: Member.model_validate_json(each.model_dump_json()) for name, each in fleet.members.items()
        }
        assert (fleet.rollout, fleet.members) == before

    @precondition(lambda self: self.fleet.rollout.under_way)
    @rule(order=st.sampled_from([lambda begun, members: paused(begun, members, "alice"), resumed, undone]))
    def is_told(self, order: Callable[[Rollout, dict[str, Member]], tuple[Rollout, dict[str, Member]]]) -> None:
        self.fleet.rollout, self.fleet.members = order(self.fleet.rollout, self.fleet.members)

    def _name(self, pick: int) -> str:
        names = sorted(self.fleet.members)
        return names[pick % len(names)]

    @invariant()
    def everybody_boots_one_of_two_images(self) -> None:
        fleet = self.fleet
        told = assignments(fleet.rollout, fleet.members)
        assert {each.image for each in told.values()} <= {OLD, NEW}
        if fleet.rollout.under_way:
            assert told.keys() == {name for name, each in fleet.members.items() if each.state is not S.LEFT}
        assert fleet.rollout.undoing or not fleet.rollout.verdict
        if fleet.rollout.undoing:
            assert {each.image for each in told.values()} <= {OLD}

    @invariant()
    def of_a_control_plane_one_at_a_time_is_told_to_go(self) -> None:
        """Once it was looked at: what is assigned and not out by itself."""
        fleet = self.fleet
        if self.looked_at is fleet.members and fleet.rollout.state is RolloutState.RUNNING:
            named = [name for name in fleet.assigned if fleet.members[name].named]
            out = [name for name in fleet.of_state(S.OUT) if fleet.members[name].named]
            assert len(named) <= (0 if out else 1)
            assert not any(fleet.control[name] for name in named)
        told = assignments(fleet.rollout, fleet.members)
        assert {told[name].image for name in fleet.of_state(S.KEPT) if name in told} <= {OLD}

    @invariant()
    def a_pause_begins_nothing(self) -> None:
        Rollouts.steps += 1
        if self.fleet.rollout.state is RolloutState.PAUSED:
            assert self.fleet.assigned == []

    def teardown(self) -> None:
        """Who is told to, reboots, and comes back as it should: it ends, or it says what has to be done."""
        if not hasattr(self, "fleet"):
            return
        fleet = self.fleet
        fleet.seeing, fleet.refused, fleet.control = True, {}, dict.fromkeys(fleet.control, "")
        for each in fleet.machines.values():
            each.known = True
        for _ in range(20 * len(fleet.members) + 40):
            if fleet.rollout.state is not RolloutState.RUNNING:
                break
            for name, member in fleet.members.items():
                if member.state is S.ASSIGNED:
                    fleet.leave(name)
                elif member.state is S.OUT:
                    fleet.come(name)
            fleet.look(60)
        assert fleet.rollout.state is not RolloutState.RUNNING
        assert fleet.rollout.why
        if fleet.rollout.state is RolloutState.COMPLETE:
            assert fleet.of_state(S.DONE)


def test_whatever_happens_in_ten_thousand_steps_no_more_are_out_than_may_be_and_it_ends() -> None:
    Rollouts.steps = 0
    run_state_machine_as_test(Rollouts, settings=settings(max_examples=260, stateful_step_count=50, deadline=None))
    assert Rollouts.steps >= 10_000
