"""Whatever happens to machines, in whatever order: never more are out than may be, and it comes to an end."""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from netboot.lifecycle.rollout import Member, MemberState, Rollout, RolloutState, assignments
from netboot.lifecycle.rollout_orders import paused, resumed, undone
from tests.rollouts import NEW, OLD, OTHER, Fleet, rollout

S = MemberState


class Rollouts(RuleBasedStateMachine):
    """A small fleet, a rollout, and everything that may happen."""

    fleet: Fleet

    @initialize(
        racks=st.lists(st.sampled_from("abc"), min_size=2, max_size=12),
        share=st.sampled_from(["1", "2", "3", "25%", "100%"]),
        per_rack=st.sampled_from([None, 1, 2]),
        canary=st.integers(2, 3),
        on_next_boot=st.booleans(),
    )
    def begin(self, racks: list[str], share: str, per_rack: int | None, canary: int, on_next_boot: bool) -> None:
        begun = rollout(
            on_next_boot=on_next_boot,
            unproven=len(set(racks)) < 2,
            max_unavailable=share,
            per_rack=per_rack,
            canary=canary,
        )
        self.fleet = Fleet.of(begun, len(racks), lambda number: racks[number])

    @rule(seconds=st.sampled_from([0, 1, 60, 599, 600]))
    def look(self, seconds: int) -> None:
        before, fleet = self.fleet.members, self.fleet
        fleet.look(seconds)
        begun = [
            name for name, each in fleet.members.items() if each.state is S.ASSIGNED and before[name].state is S.WAITING
        ]
        if not begun or (fleet.rollout.undoing and fleet.rollout.on_next_boot):
            return
        out = [name for name in fleet.members if self._out(name)]
        there = [each for each in fleet.members.values() if each.state is not S.LEFT]
        assert len(out) <= (1 if fleet.rollout.unproven else fleet.rollout.strategy.budget(len(there)))
        for name in begun if fleet.rollout.strategy.per_rack else ():
            rack = fleet.members[name].rack
            of_rack = [each for each in out if fleet.members[each].rack == rack]
            assert len(of_rack) <= (fleet.rollout.strategy.per_rack or 0)

    def _out(self, name: str) -> bool:
        member, machine = self.fleet.members[name], self.fleet.machines[name]
        moving = member.state in (S.ASSIGNED, S.OUT)
        return member.state is not S.LEFT and (moving or not machine.known or not machine.up)

    @rule(pick=st.integers(0, 99), image=st.sampled_from([None, OLD, NEW, OTHER]))
    def comes(self, pick: int, image: str | None) -> None:
        self.fleet.come(self._name(pick), image)

    @rule(pick=st.integers(0, 99))
    def leaves(self, pick: int) -> None:
        self.fleet.leave(self._name(pick))

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
        if fleet.rollout.undoing:
            assert {each.image for each in told.values()} <= {OLD}

    @invariant()
    def a_pause_begins_nothing(self) -> None:
        if self.fleet.rollout.state is RolloutState.PAUSED:
            assert self.fleet.assigned == []

    def teardown(self) -> None:
        """Who is told to, reboots, and comes back as it should: it ends, or it says what has to be done."""
        if not hasattr(self, "fleet"):
            return
        fleet = self.fleet
        fleet.seeing, fleet.refused = True, {}
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


TestRollouts = Rollouts.TestCase
TestRollouts.settings = settings(max_examples=300, stateful_step_count=50, deadline=None)
