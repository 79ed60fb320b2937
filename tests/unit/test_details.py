"""What `/readyz` says of a loop that is in order, has a problem, or is silent, and what to do about it."""

import pytest

from netboot.readiness import Detail
from netboot.status import FRESH_MS
from netboot.status.controllers import LifecycleStatus
from netboot.web.details import LOG, at_work

NOW = 1_000_000
SAID = LifecycleStatus(at_ms=0, conditions=(), overdue={}, waiting=0, unseen=())
KILL = f"see whether its disk is there; {LOG}; `kill` that process to start it again"


@pytest.mark.parametrize(
    ("quiet", "problem", "message", "remedy"),
    [
        (0, "a defect", "a defect", LOG),
        (FRESH_MS, "a defect", "a defect", LOG),
        (FRESH_MS + 1, "", "has said nothing for 10 s", KILL),
        (-1, "", "has said nothing since the machine was started", KILL),
    ],
)
def test_who_is_silent_is_started_again_and_who_has_a_problem_is_read(
    quiet: int, problem: str, message: str, remedy: str
) -> None:
    said = SAID.model_copy(update={"up_ms": NOW - quiet, "problem": problem})
    assert at_work("lifecycle", said, NOW, None, "see whether its disk is there; ") == Detail(
        ok=False, message=message, remedy=remedy
    )
