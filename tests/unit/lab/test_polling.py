"""How long whoever asks again waits."""

from time import monotonic

import pytest

from lab.errors import DeadlineError
from lab.polling import MOST_SECONDS, pause_after
from tests.processes import wait_for


@pytest.mark.parametrize(
    ("took", "least", "pause"),
    [(0.0, 0.02, 0.02), (0.001, 0.02, 0.02), (0.3, 0.02, 0.9), (30.0, 0.2, 2.0), (0.1, 5.0, 5.0)],
)
def test_a_question_that_takes_long_is_asked_less_often(took: float, least: float, pause: float) -> None:
    assert pause_after(took, least) == pytest.approx(pause)


def test_who_waits_asks_by_that_rule() -> None:
    """A question of 50 ms is asked at most six times in a second, not fourteen times."""
    asked: list[float] = []

    def slow() -> bool:
        asked.append(monotonic())
        while monotonic() < asked[-1] + 0.05:
            pass
        return False

    with pytest.raises(DeadlineError, match="did not happen within 1"):
        wait_for(slow, 1, 0.02)
    assert 1 <= len(asked) <= 6
    assert MOST_SECONDS > 0.05
