"""A machine's status: of every reason of every condition, and which goes first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.reasons import STATUSES, ConditionType, Reason
from netboot.lifecycle.summary import LONG_GATED_MS, UNJUDGED, MachineStatus, as_of, is_retired, summary_of
from netboot.lifecycle.transitions import Trouble
from netboot.machines.positions import natural

T, R = ConditionType, Reason
UP = {T.BOOTED: R.BOOTED, T.JOINED: R.JOINED, T.HEALTHY: R.CHECKS_PASSED, T.IN_SERVICE: R.IN_SERVICE}
DOWN = {T.BOOTED: R.BOOTING, T.JOINED: R.BOOTING, T.HEALTHY: R.NO_REPORT, T.IN_SERVICE: R.NOT_JOINED}


def judged(reasons: dict[ConditionType, Reason]) -> Judged:
    conditions = [MachineCondition.of(kind, reason, f"why {kind}", 5_000) for kind, reason in reasons.items()]
    return Judged(machine="gpu-001", conditions=tuple(conditions), timers={}, step="Ready", boot="b", image="c" * 64)


@pytest.mark.parametrize(
    ("reasons", "status", "condition"),
    [
        (UP, "in-service", "InService"),
        (UP | {T.IN_SERVICE: R.NO_CLUSTER}, "in-service", "InService"),
        (DOWN, "coming", "Booted"),
        (UP | {T.JOINED: R.JOINING, T.IN_SERVICE: R.NOT_JOINED}, "coming", "Joined"),
        (UP | {T.IN_SERVICE: R.HEALTH_GATED}, "coming", "InService"),
        (DOWN | {T.BOOTED: R.STUCK, T.JOINED: R.STUCK}, "late", "Booted"),
        (UP | {T.JOINED: R.STUCK, T.IN_SERVICE: R.NOT_JOINED}, "late", "Joined"),
        (DOWN | {T.BOOTED: R.BOOT_LOOP, T.IN_SERVICE: R.HELD}, "late", "Booted"),
        (DOWN | {T.BOOTED: R.FAILED}, "ill", "Booted"),
        (UP | {T.BOOTED: R.LOST, T.JOINED: R.LOST, T.IN_SERVICE: R.NODE_NOT_SEEN}, "ill", "Booted"),
        (UP | {T.HEALTHY: R.CHECKS_FAILED, T.IN_SERVICE: R.HELD}, "ill", "Healthy"),
        (UP | {T.IN_SERVICE: R.NODE_NOT_READY}, "ill", "InService"),
        (UP | {T.IN_SERVICE: R.HELD}, "held", "InService"),
        (UP | {T.IN_SERVICE: R.QUARANTINED}, "held", "InService"),
        (UP | {T.IN_SERVICE: R.DRAINING}, "held", "InService"),
        (UP | {T.IN_SERVICE: R.CORDONED}, "held", "InService"),
        (DOWN | {T.BOOTED: R.NEVER_BOOTED, T.JOINED: R.NEVER_BOOTED}, "off", "Booted"),
        (DOWN | {T.BOOTED: R.DISABLED, T.JOINED: R.DISABLED}, "off", "Booted"),
        (DOWN | {T.BOOTED: R.STUCK, T.IN_SERVICE: R.RETIRED}, "off", "InService"),
        (UP | {T.IN_SERVICE: R.NODE_NOT_SEEN}, "unknown", "InService"),
    ],
)
def test_the_status(reasons: dict[ConditionType, Reason], status: str, condition: str) -> None:
    found = summary_of(judged(reasons))
    assert (found.status, found.condition, found.message) == (status, condition, f"why {condition}")
    assert (found.since_ms, found.step, found.boot, found.image) == (5_000, "Ready", "b", "c" * 64)
    assert dict(found.reasons) == {str(kind): str(reason) for kind, reason in reasons.items()}


def test_who_is_long_behind_the_gate_is_late() -> None:
    """Not by the time in which it did not run at all: it joined an hour after it was in service last."""
    gated = judged(UP | {T.IN_SERVICE: R.HEALTH_GATED})
    joined = MachineCondition.of(T.JOINED, R.JOINED, "why Joined", 7_000)
    conditions = [joined if each.type is T.JOINED else each for each in gated.conditions]
    gated = gated.model_copy(update={"conditions": tuple(conditions)})
    found = summary_of(gated)
    assert [as_of(found, 7_000 + LONG_GATED_MS + late).status for late in (-1, 0)] == ["coming", "late"]
    assert as_of(found, 7_000 + LONG_GATED_MS).reason == "HealthGated"
    assert summary_of(gated.model_copy(update={"trouble": Trouble.STUCK})).status == "late"
    for other in (UP, UP | {T.HEALTHY: R.CHECKS_FAILED, T.IN_SERVICE: R.HEALTH_GATED}):
        assert as_of(summary_of(judged(other)), 9 * LONG_GATED_MS).status in ("in-service", "ill")


@given(st.fixed_dictionaries({}, optional={kind: st.sampled_from(tuple(STATUSES[kind])) for kind in T}))
def test_a_summary_says_who_is_retired(reasons: dict[ConditionType, Reason]) -> None:
    """By one condition, whatever the others say of it."""
    assert is_retired(summary_of(judged(reasons))) == (reasons.get(T.IN_SERVICE) is R.RETIRED)


def test_who_was_not_judged_is_unknown() -> None:
    assert summary_of(judged({})) is UNJUDGED
    assert not is_retired(UNJUDGED)
    assert UNJUDGED.status is MachineStatus.UNKNOWN


def test_racks_are_sorted_as_people_count() -> None:
    names = ["r10", "r2", "a", "r2b", "10", "9", ""]
    assert sorted(names, key=natural) == ["", "a", "r2", "r2b", "r10", "9", "10"]
