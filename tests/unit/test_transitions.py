"""The tables of transitions of boots and of machines: total, and nothing is lost in them."""

import itertools

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reached import ORDER
from netboot.lifecycle.transitions import (
    EFFECTS,
    PLACE,
    STEPS,
    TROUBLES,
    Absence,
    Act,
    Course,
    Fact,
    Gate,
    Kind,
    Mark,
    Trouble,
    advanced,
    course_of,
    gravest,
    kind_of,
    marks_after,
)

FACTS: tuple[Fact, ...] = (*ORDER, Phase.FAILED, *Gate, *Absence)
COURSES = tuple(itertools.starmap(Course, itertools.product(STEPS, Trouble)))


def test_the_table_of_boots_has_every_state_and_every_kind_of_fact() -> None:
    assert {trouble: set(row) for trouble, row in TROUBLES.items()} == {trouble: set(Kind) for trouble in Trouble}


def test_every_fact_leads_from_every_state_to_a_declared_one() -> None:
    reached = {advanced(course, fact) for course in COURSES for fact in FACTS}
    assert reached <= set(COURSES)
    assert {(kind_of(fact, course.step)) for course in COURSES for fact in FACTS} == set(Kind)


def test_what_comes_again_or_late_changes_nothing() -> None:
    for course in COURSES:
        for phase in ORDER:
            if PLACE[phase] <= PLACE[course.step]:
                assert advanced(course, phase) == course


def test_a_phase_beyond_the_furthest_ends_every_trouble() -> None:
    for trouble in Trouble:
        assert advanced(Course(Phase.SWITCHED, trouble), Phase.BOOTED) == Course(Phase.BOOTED, Trouble.NONE)


def test_a_ready_node_ends_every_trouble_and_its_gate_may_close_again() -> None:
    for trouble in Trouble:
        assert advanced(Course(Phase.READY, trouble), Gate.IN_SERVICE) == Course(Gate.IN_SERVICE, Trouble.NONE)
        assert advanced(Course(Gate.IN_SERVICE, trouble), Gate.HEALTH_GATED) == Course(Gate.HEALTH_GATED, Trouble.NONE)


def test_one_that_said_why_it_failed_is_not_merely_stuck_and_one_that_is_lost_is_lost() -> None:
    assert course_of([Phase.SWITCHED, Phase.FAILED, Absence.OVERDUE]) == Course(Phase.SWITCHED, Trouble.FAILED)
    assert course_of([Phase.SWITCHED, Absence.OVERDUE, Phase.FAILED]) == Course(Phase.SWITCHED, Trouble.FAILED)
    assert course_of([Phase.READY, Absence.SILENT, Phase.FAILED, Absence.OVERDUE]) == Course(Phase.READY, Trouble.LOST)


def test_every_act_has_its_effect_and_every_mark_can_be_put_on_and_taken_off() -> None:
    assert set(EFFECTS) == set(Act)
    assert {effect.on for effect in EFFECTS.values()} == {effect.off for effect in EFFECTS.values()} == {*Mark, None}


def test_no_boot_and_no_other_act_takes_off_what_is_on_a_machine() -> None:
    ends = {
        Mark.RETIRED: Act.REINSTATE,
        Mark.QUARANTINED: Act.READMIT,
        Mark.HELD: Act.RELEASE,
        Mark.DRAINING: Act.DRAINED,
    }
    on = [Act.HOLD, Act.QUARANTINE, Act.DRAIN, Act.RETIRE]
    for mark, end in ends.items():
        others = [act for act in Act if act not in (end, *on)]
        assert mark in marks_after([*on, *others])
        assert marks_after([*on, end]) == set(Mark) - {mark}
    assert marks_after([*on, Act.BOOT]) == set(Mark)


def test_the_gravest_mark_is_named() -> None:
    assert gravest(frozenset()) is None
    assert gravest(frozenset({Mark.DRAINING, Mark.HELD})) is Mark.HELD
    assert gravest(frozenset(Mark)) is Mark.RETIRED


class Histories(RuleBasedStateMachine):
    """A boot and its machine while facts and acts come in any order, as often as they like."""

    steps = 0
    """Facts and acts of all histories."""

    def __init__(self) -> None:
        super().__init__()
        self.course = Course()
        self.facts: list[Fact] = []
        self.gate: Gate | None = None
        self.acts: list[Act] = []
        self.on: set[Mark] = set()

    @rule(facts=st.lists(st.sampled_from(FACTS), min_size=1, max_size=8))
    def heard(self, facts: list[Fact]) -> None:
        for fact in facts:
            self.course = advanced(self.course, fact)
            self.facts.append(fact)
            self.gate = fact if isinstance(fact, Gate) else self.gate

    @rule(acts=st.lists(st.sampled_from(list(Act)), min_size=1, max_size=8))
    def done(self, acts: list[Act]) -> None:
        for act in acts:
            self.acts.append(act)
            if EFFECTS[act].on is not None:
                self.on |= {EFFECTS[act].on}  # type: ignore[arg-type]
            if EFFECTS[act].off is not None:
                self.on -= {EFFECTS[act].off}

    @invariant()
    def is_declared(self) -> None:
        assert self.course in COURSES
        assert marks_after(self.acts) == self.on <= set(Mark)

    @invariant()
    def has_lost_no_phase(self) -> None:
        """The furthest phase is the furthest of all that came, unless the cluster said how its Node is."""
        phases = [fact for fact in self.facts if isinstance(fact, Phase) and fact is not Phase.FAILED]
        furthest = max((PLACE[phase] for phase in phases), default=0)
        assert PLACE[self.course.step] == (PLACE[self.gate] if self.gate else furthest)

    def teardown(self) -> None:
        """Whoever starts anew with what is written down comes to the same; so do phases in another order, or twice."""
        type(self).steps += len(self.facts) + len(self.acts)
        assert course_of(self.facts) == self.course
        assert course_of([fact for fact in self.facts for _ in range(2)]) == self.course
        phases: list[Fact] = [fact for fact in self.facts if isinstance(fact, Phase) and fact is not Phase.FAILED]
        assert course_of(phases) == course_of(phases[::-1]) == course_of(sorted(phases))


def test_no_order_repetition_or_source_of_facts_loses_one_or_leads_to_what_is_not_declared() -> None:
    small = settings(
        max_examples=100, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    run_state_machine_as_test(Histories, settings=small)
    assert Histories.steps >= 10_000
