"""Time during which we could see, and outages that stop it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.outage import Outages
from netboot.lifecycle.seen_time import LONGEST_STEP_MS, SeenTime


def test_each_place_has_a_clock_that_goes_on_while_it_can_be_seen() -> None:
    time = SeenTime({"a": 7}, up_ms=1_000)
    time.look({"a", "b"}, 2_000)
    assert time.values == {"a": 7, "b": 0}  # what was before the first look nobody saw
    time.look({"a"}, 3_000)
    time.look({"a", "b"}, 4_000)
    assert time.values == {"a": 2_007, "b": 0}  # b was away at one of two looks
    time.look({"a", "b"}, 5_000)
    assert time.values == {"a": 3_007, "b": 1_000}


def test_a_pause_of_ours_is_not_time_in_which_a_machine_could_be_heard() -> None:
    time = SeenTime({}, up_ms=0)
    time.look({"a"}, 0)
    time.look({"a"}, 3_600_000)
    assert time.values == {"a": LONGEST_STEP_MS}


def test_no_clock_goes_back() -> None:
    time = SeenTime({"a": 5}, up_ms=9_000)
    time.look({"a"}, 9_000)
    time.look({"a"}, 1_000)
    assert time.values == {"a": 5}


def outages(counts: dict[str, tuple[int, int]]) -> Outages:
    """By class: how many are gone, of how many."""
    made = Outages()
    for kind, (gone, of) in counts.items():
        for number in range(of):
            made.put(f"{kind}{number}", kind, gone=number < gone)
    return made


@pytest.mark.parametrize(
    ("counts", "still"),
    [
        ({"gpu": (2, 4)}, set()),
        ({"gpu": (3, 4)}, {"gpu"}),
        ({"gpu": (3, 4), "cpu": (0, 4)}, {"gpu"}),
        ({"gpu": (3, 3)}, set()),
        ({"gpu": (3, 3), "cpu": (0, 2)}, {"gpu", "cpu"}),
        ({"gpu": (3, 3), "cpu": (0, 4)}, set()),
        ({"gpu": (1, 1)}, set()),
        ({}, set()),
    ],
    ids=[
        "half of a class",
        "more than half",
        "of that class alone",
        "too few to tell an outage",
        "few are judged with their cluster",
        "which is well",
        "one machine",
        "none",
    ],
)
def test_where_most_of_a_class_is_gone_at_once_its_clock_stands_still(
    counts: dict[str, tuple[int, int]], still: set[str]
) -> None:
    assert outages(counts).standing_still() == still


_SAID = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["gpu", "cpu", None]), st.booleans())


@given(st.lists(_SAID, max_size=40))
def test_whatever_was_said_before_only_what_was_said_last_counts(said: list[tuple[str, str | None, bool]]) -> None:
    made, last = Outages(), dict[str, tuple[str, bool]]()
    for node, place, gone in said:
        if place is None:
            made.drop(node)
            last.pop(node, None)
        else:
            made.put(node, place, gone=gone)
            last[node] = (place, gone)
    anew = Outages()
    for node, (place, gone) in last.items():
        anew.put(node, place, gone=gone)
    assert made.standing_still() == anew.standing_still()
