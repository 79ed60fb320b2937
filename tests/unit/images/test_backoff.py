"""How long to wait after a failure: bounds that double, and chance within them."""

from hypothesis import given
from hypothesis import strategies as st

from images.values.backoff import Backoff

SECONDS = st.floats(min_value=0.001, max_value=3_600)
FAILURES = st.integers(min_value=1, max_value=10**9)


@given(SECONDS, SECONDS, FAILURES, st.floats(min_value=0, max_value=1))
def test_a_wait_is_never_longer_than_its_bound_nor_that_than_the_longest(
    first: float, longest: float, failures: int, chance: float
) -> None:
    backoff = Backoff(first, longest, draw=lambda: chance)
    assert 0 <= backoff.seconds(failures) <= backoff.bound(failures) <= longest
    assert backoff.bound(failures) <= backoff.bound(failures + 1) <= 2 * backoff.bound(failures)


def test_the_bound_doubles_from_the_first_to_the_longest() -> None:
    backoff = Backoff(0.5, 3.0, draw=lambda: 1.0)
    assert [backoff.seconds(failures) for failures in range(6)] == [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]


def test_waits_fill_the_whole_of_their_bound() -> None:
    waits = [Backoff(1.0, 8.0).seconds(4) for _ in range(2_000)]
    assert min(waits) < 0.5
    assert max(waits) > 7.5
    assert 3.5 < sum(waits) / len(waits) < 4.5
