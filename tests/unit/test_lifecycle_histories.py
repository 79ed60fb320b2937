"""The lifecycle of two machines through whatever comes: facts in any order, by anybody, twice; clocks that stand still
or are set back; Nodes, acts and inventories that change; restarts that find what was kept, or nothing."""

from collections import Counter
from typing import Any, ClassVar

import hypothesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from netboot.lifecycle.judge import judge
from netboot.lifecycle.known import MOST_COUNTED, UP, Known, Node, counted, wants_claim
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reached import ORDER
from netboot.lifecycle.reasons import STATUSES, ConditionType, Reason
from netboot.lifecycle.state import MachineState
from netboot.lifecycle.transitions import PLACE, STEPS, Act, Mark, Trouble, marks_after
from netboot.machines.boot_limit import BootLimit
from netboot.machines.deadlines import in_force
from tests.lifecycle_world import ALL, World, declared
from tests.records import boot_id, checked, event, script

NAMES = ("gpu-001", "gpu-002")
BOOTS = 8
"""Of each machine."""
WAITED = {Reason.STUCK, Reason.LOST, Reason.SILENT, Reason.REPORT_STALE, Reason.RETIRED}
"""What time alone brings: who begins anew with nothing kept begins to wait anew."""
TROUBLES = {Reason.STUCK, Reason.BOOT_LOOP, Reason.LOST, Reason.FAILED, Reason.SILENT}
_TOLD = st.lists(st.sampled_from([*ORDER[1:], Phase.FAILED]), max_size=5)
_BOOT = st.tuples(st.sampled_from(NAMES), st.integers(1, BOOTS))
_SAYS = st.fixed_dictionaries(
    {},
    optional={
        "joins": st.booleans(),
        "enabled": st.booleans(),
        "image": st.sampled_from(["a" * 64, "b" * 64, None]),
        "deadlines": st.sampled_from([in_force(), in_force(("class hgx", dict.fromkeys(in_force(), 30)))]),
        "boot_limit": st.sampled_from([BootLimit(0, "class hgx"), BootLimit(2, "class hgx")]),
    },
)


class Lives(RuleBasedStateMachine):
    """After each step everybody who waits is judged."""

    counts: ClassVar[Counter[str]] = Counter()
    """Steps of all histories, and what was found in them."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(*NAMES)
        self.at_most: Counter[str] = Counter()
        """How far each clock can be: all time in which its place was seen."""
        self.heard: dict[tuple[str, Phase], dict[str, int]] = {}
        """Boot and phase → these when it came."""

    @initialize()
    def first(self) -> None:
        self.world.judge()
        type(self).counts["steps"] -= 1  # what holds is looked at before the first step, too

    # -- what comes ---------------------------------------------------------------------------------------------------

    @rule(boot=_BOOT, served=st.booleans(), phases=_TOLD, health=st.booleans())
    def facts(self, boot: tuple[str, int], served: bool, phases: list[Phase], health: bool) -> None:
        name, number = boot
        told: list[Any] = [script(name, number)] if served or not phases else []
        told += [event(name, number, phase) for phase in phases]
        for phase in (Phase.SCRIPT_SERVED, *phases):
            self.heard.setdefault((boot_id(name, number), phase), dict(self.at_most))
        self.world.take(*told, *([checked(name, number)] if health else []))
        self._judge()

    @rule(name=st.sampled_from(NAMES), boots=st.integers(3, BOOTS))
    def storm(self, name: str, boots: int) -> None:
        """Somebody asks for scripts, and reports."""
        for number in range(1, boots + 1):
            self.facts((name, number), True, [Phase.INITRD_STARTED] if number % 2 else [], False)

    @rule(name=st.sampled_from(NAMES), node=st.sampled_from([None, *Node]))
    def node(self, name: str, node: Node | None) -> None:
        nodes = {other: seen for other, seen in self.world.nodes["default"].items() if other != name}
        self.world.nodes = {"default": nodes | ({name: node} if node is not None else {})}
        self._judge()

    @rule(name=st.sampled_from(NAMES), acts=st.lists(st.sampled_from(list(Act)), max_size=4))
    def acts(self, name: str, acts: list[Act]) -> None:
        self.world.acts = {**self.world.acts, name: tuple(acts)}
        self._judge()

    @rule(name=st.sampled_from(NAMES), says=_SAYS, there=st.sampled_from([True, True, True, False]))
    def inventory(self, name: str, says: dict[str, Any], there: bool) -> None:
        others = {other: each for other, each in (self.world.declared or {}).items() if other != name}
        self.world.declared = others | ({name: declared(name, **says)} if there else {})
        self._judge()

    # -- time, and what can be seen -----------------------------------------------------------------------------------

    @rule(seeing=st.sampled_from([ALL, ALL, frozenset({"reports"}), frozenset({"cluster/default"}), frozenset()]))
    def sight(self, seeing: frozenset[str]) -> None:
        self.world.seeing = seeing
        self._judge()

    @rule(looks=st.sampled_from([1, 5, 40, 125]))
    def time(self, looks: int) -> None:
        """Ten seconds each, the longest that counts between two."""
        for _ in range(looks):
            self.world.up += 10_000
            self.world.now_ms_ += 10_000
            self.at_most.update(dict.fromkeys(self.world.seeing, 10_000))
            self.world.loop.step()
        self._judge()

    @rule(ms=st.integers(-(10**10), 10**10))
    def clock(self, ms: int) -> None:
        """Somebody sets the time of day."""
        self.world.now_ms_ += ms

    # -- restarts -----------------------------------------------------------------------------------------------------

    @rule(up=st.sampled_from([0, 5_000, 10**9]))
    def restart(self, up: int) -> None:
        """What was kept is found; the host may have been started again."""
        before = self._found()
        self.world.up = up
        self.world.start()
        self._judge()
        after = self._found()
        assert {name: found for name, found in before.items() if name in after} == after, "a restart alters nothing"

    @rule()
    def restart_with_nothing(self) -> None:
        self.world.kept.kept.clear()
        self.world.kept.clocks.clear()
        self.world.start()
        self._judge()

    @rule(looks=st.sampled_from([1, 8]), lost=st.booleans())
    def disk(self, looks: int, lost: bool) -> None:
        """It refuses for some time, and may lose what is on it."""
        self.world.kept.refuses = True
        self.time(looks)
        if lost and looks > 1:  # the clocks are to be written down each minute, so it was noticed
            self.world.kept.kept.clear()
        self.world.kept.refuses = False
        self._judge()

    # -- what holds ---------------------------------------------------------------------------------------------------

    @invariant()
    def every_machine_of_the_inventory_and_no_other_has_every_condition_as_declared(self) -> None:
        type(self).counts["steps"] += 1
        assert self.world.kept.kept.keys() == (self.world.declared or {}).keys()
        for name, judged in self.world.kept.kept.items():
            assert [each.type for each in judged.conditions] == list(ConditionType), name
            assert all(STATUSES[each.type][each.reason] == each.status for each in judged.conditions)
            assert judged.step == "" or judged.step in STEPS
            type(self).counts.update({each.reason.value for each in judged.conditions})

    @invariant()
    def what_is_found_hangs_on_no_history_but_on_what_was_waited_for(self) -> None:
        for name, judged in self.world.kept.kept.items():
            known = self._known(name)
            anew = judge(known, None, {}, 0).judged
            here = {each.type: each.reason for each in judged.conditions}
            may_be_lost = ("node" if known.declared.joins else "report") in judged.timers  # then another boot explains
            if not WAITED & set(here.values()) and not may_be_lost:
                assert here == {each.type: each.reason for each in anew.conditions}
                assert judged.step == anew.step

    @invariant()
    def nothing_on_the_wire_makes_a_machine_look_bad_whose_node_is_ready(self) -> None:
        for name, judged in self.world.kept.kept.items():
            known = self._known(name)
            current = known.state.current
            if known.node in UP and current is not None and current.phase(Phase.READY) is not None:
                found = {each.reason for each in judged.conditions}
                assert judged.step == ("HealthGated" if known.node is Node.GATED else "InService")
                assert not found & TROUBLES or judged.step == "HealthGated"
                assert judged.condition(ConditionType.JOINED).status == "True"  # type: ignore[union-attr]

    @invariant()
    def whoever_is_stuck_could_have_been_heard_for_as_long_as_its_deadline(self) -> None:
        for name, judged in self.world.kept.kept.items():
            for each in judged.conditions:
                if each.reason is Reason.STUCK and judged.step in set(Phase):
                    boot, step = each.message.split()[1], Phase(judged.step)
                    place = "cluster/default" if PLACE[step] >= PLACE[Phase.BOOTED] else "reports"
                    passed = self.at_most[place] - self.heard[boot, step].get(place, 0)
                    assert passed >= self._known(name).declared.deadlines[step].seconds * 1000

    @invariant()
    def a_retired_machine_is_never_late(self) -> None:
        for name, judged in self.world.kept.kept.items():
            if Mark.RETIRED in marks_after(self.world.acts.get(name, ())):
                found = {each.reason for each in judged.conditions}
                assert not found & {Reason.STUCK, Reason.LOST, Reason.BOOT_LOOP}
                assert judged.trouble is Trouble.NONE

    def _judge(self) -> None:
        self.world.judge()

    def _found(self) -> dict[str, Any]:
        return {name: judged.conditions for name, judged in self.world.kept.kept.items()}

    def _known(self, name: str) -> Known:
        said, states = (self.world.declared or {})[name], self.world.states
        state = states.machines([name]).get(name, MachineState(machine=name))
        node = self.world.nodes["default"].get(name) if said.joins else None
        newest = states.boots(name, 1) if wants_claim(state, node) else []
        claim = newest[0] if newest else None
        least = counted(said, state, claim, node)
        tries = states.since_ready(name, least, MOST_COUNTED) if least is not None else ()
        return Known(said, state, claim, node, marks_after(self.world.acts.get(name, ())), tries)


def test_whatever_comes_in_ten_thousand_steps_every_machine_is_judged_by_the_tables_and_by_what_could_be_seen() -> None:
    each = settings(
        max_examples=150,
        stateful_step_count=90,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[hypothesis.Phase.generate],  # to make a history smaller takes minutes: for whoever looks for a cause
    )
    Lives.counts.clear()
    run_state_machine_as_test(Lives, settings=each)
    assert Lives.counts["steps"] >= 10_000
    found = set(Lives.counts)  # of each of these some hundred; others are rarer
    assert found >= {Reason.STUCK, Reason.BOOT_LOOP, Reason.FAILED, Reason.SILENT, Reason.RETIRED, Reason.IN_SERVICE}
