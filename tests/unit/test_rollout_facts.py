"""What a rollout is told of a machine, by what was found of it."""

import pytest

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.rollout_facts import facts_of
from tests.unit.test_drift import view


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (Reason.IN_SERVICE, (True, "")),
        (Reason.HELD, (False, "it is held")),
        (Reason.QUARANTINED, (False, "it is quarantined")),
        (Reason.CORDONED, (False, "it is cordoned")),
        (Reason.HEALTH_GATED, (False, "")),
        (Reason.NODE_NOT_READY, (False, "")),
    ],
)
def test_who_is_kept_out_of_service_by_somebody_is_not_out_by_its_image(
    reason: Reason, expected: tuple[bool, str]
) -> None:
    condition = MachineCondition.of(ConditionType.IN_SERVICE, reason, "", 1)
    judged = {"gpu-001": Judged(machine="gpu-001", conditions=(condition,), timers={})}
    (fact,) = facts_of(view().snapshot, "stable", ["gpu-001"], judged).values()
    assert (fact.up, fact.held) == expected
