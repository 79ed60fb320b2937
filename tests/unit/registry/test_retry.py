"""When something is tried again, and how long between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.registry.errors import AbsentError, UnreachableError
from images.registry.retry import RetryPolicy


class Failing:
    """Fails so many times, then has an answer."""

    def __init__(self, times: int, error: Exception) -> None:
        self.left, self.error = times, error

    def __call__(self) -> str:
        if self.left:
            self.left -= 1
            raise self.error
        return "answer"


def test_until_it_answers() -> None:
    slept: list[float] = []
    told: list[str] = []
    retry = RetryPolicy(attempts=5, first=1.0, most=3.0, sleep=slept.append, draw=lambda: 1.0, tell=told.append)
    assert retry(Failing(4, UnreachableError("it rains"))) == "answer"
    assert slept == [1.0, 2.0, 3.0, 3.0]
    assert told[1] == "it rains; trying again in 2.0 s"


def test_not_for_ever() -> None:
    retry = RetryPolicy(attempts=3, sleep=lambda _seconds: None)
    with pytest.raises(UnreachableError) as error:
        retry(Failing(3, UnreachableError("it rains", after=7)))
    assert (str(error.value), error.value.after) == ("it rains (tried 3 times)", 7)


def test_what_is_certain_is_not_asked_again() -> None:
    failing = Failing(2, AbsentError("no such tag"))
    with pytest.raises(AbsentError):
        RetryPolicy(sleep=lambda _seconds: None)(failing)
    assert failing.left == 1


def test_where_the_place_says_how_long() -> None:
    slept: list[float] = []
    retry = RetryPolicy(attempts=3, sleep=slept.append, draw=lambda: 0.0)
    retry(Failing(1, UnreachableError("later", after=7.0)))
    retry(Failing(1, UnreachableError("much later", after=86_400.0)))
    assert slept == [7.0, 60.0]


@given(st.integers(1, 40), st.floats(0, 1))
def test_waits_are_bounded(failed: int, drawn: float) -> None:
    slept: list[float] = []
    RetryPolicy(attempts=100, sleep=slept.append, draw=lambda: drawn).wait(failed, UnreachableError("it rains"))
    assert 0 <= slept[0] <= min(4.0, 0.25 * 2 ** (failed - 1))
