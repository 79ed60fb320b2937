"""Who brings which chunks of the root image next: the stage's own rule (next.awk), by what has come so far."""

import pytest

from tests.tools.images.boot_stage import Stage

pytestmark = pytest.mark.tools

NEXT = """
printf "$GOOD" >"$RUN/good"
printf "$DAMAGED" >"$RUN/damaged"
printf "$CLAIMED" >"$RUN/claimed"
printf "$ALIVE" >"$RUN/alive"
cd "$RUN"
awk -v count="$COUNT" -v seconds=40 -v slot=1 -v origin=a -f "$LIB/next.awk" ./good ./damaged ./claimed ./alive
"""


def lines(*found: str) -> str:
    return "".join(f"{line}\\n" for line in found)


def good(*of: tuple[str, int, int]) -> str:
    """Origin, first and last chunk."""
    return lines(*(f"{chunk} {origin} 9" for origin, first, last in of for chunk in range(first, last + 1)))


def next_run(
    stage: Stage,
    count: int,
    alive: str = "ab",
    *,
    has: str = "",
    damaged: tuple[str, ...] = (),
    claimed: tuple[str, ...] = (),
) -> str:
    """What slot 1 brings from origin a. `alive`: an origin for each slot."""
    slots = lines(*(f"alive {number} {origin}" for number, origin in enumerate(alive, start=1)))
    files = {"GOOD": has, "DAMAGED": lines(*damaged), "CLAIMED": lines(*claimed), "ALIVE": slots}
    return stage.sh(NEXT, COUNT=str(count), **files).stdout.strip()


def test_one_alone_brings_all_that_lacks(stage: Stage) -> None:
    assert next_run(stage, 40, "a") == "0 39"
    assert next_run(stage, 40, "a", has=good(("b", 0, 9))) == "10 39"


def test_several_begin_with_little_and_go_on_by_their_speed(stage: Stage) -> None:
    assert next_run(stage, 4) == "0 0"
    assert next_run(stage, 100) == "0 3"
    first = ("claim 0 3 1", "claim 4 7 2")
    quick, slow = good(("a", 0, 3), ("b", 4, 4)), good(("a", 0, 0), ("b", 4, 7))
    assert next_run(stage, 100, has=quick, claimed=first) == "8 19"  # three times what it was
    assert next_run(stage, 100, has=slow, claimed=("claim 0 0 1", "claim 4 7 2")) == "1 3"  # up to what is taken
    longer = ("claim 0 31 1", "claim 32 39 2")
    assert next_run(stage, 100, has=good(("a", 0, 31), ("b", 32, 39)), claimed=longer) == "40 62"  # half of its share
    assert next_run(stage, 41, has=good(("a", 0, 31), ("b", 32, 39)), claimed=longer) == "40 40"


def test_the_last_chunks_are_not_for_who_would_take_longest(stage: Stage) -> None:
    has, claimed = good(("a", 0, 0), ("b", 1, 9)), ("claim 0 0 1", "claim 1 9 2", "claim 10 10 2")
    assert next_run(stage, 15, has=has, claimed=claimed) == "wait"
    assert next_run(stage, 30, has=has, claimed=claimed) == "11 11"
    assert next_run(stage, 15, has=has, claimed=claimed[:2]) == "10 10", "the other brings nothing now"
    assert next_run(stage, 15, has=has, claimed=("claim 0 0 1", "claim 1 14 2")) == "wait"
    new = good(("c", 0, 0), ("b", 1, 9))
    assert next_run(stage, 15, has=new, claimed=claimed) == "11 11", "of one that has brought nothing nobody knows"


def test_a_request_is_for_what_comes_in_a_quarter_of_a_second_at_least(stage: Stage) -> None:
    has, claimed = good(("a", 0, 799), ("b", 800, 1599)), ("claim 0 799 1", "claim 800 1599 2")
    assert next_run(stage, 1602, has=has, claimed=claimed) == "1600 1601"
    assert next_run(stage, 1610, has=has, claimed=claimed) == "1600 1603"


def test_the_end_of_a_run_goes_to_who_would_bring_it_sooner(stage: Stage) -> None:
    has, claimed = good(("a", 0, 9), ("b", 10, 14)), ("claim 0 9 1", "claim 10 20 2")
    assert next_run(stage, 21, has=has, claimed=claimed) == "18 20 2 17"
    assert next_run(stage, 17, has=has, claimed=("claim 0 9 1", "claim 10 16 2")) == "16 16 2 15"


def test_the_last_chunk_of_another_origin_is_asked_for_once_more(stage: Stage) -> None:
    has, claimed = good(("a", 0, 9)), ("claim 0 9 1", "claim 10 10 2")
    assert next_run(stage, 11, has=has, claimed=claimed) == "10 again"
    assert next_run(stage, 11, has=has, claimed=(*claimed, "again 10 1")) == "wait"
    assert next_run(stage, 11, "abc", has=has, claimed=(*claimed, "again 10 3")) == "10 again", "by a slower one"
    assert next_run(stage, 11, "aa", has=has, claimed=claimed) == "wait"


def test_of_several_that_are_slow_the_slowest_is_helped(stage: Stage) -> None:
    has = good(("a", 0, 9), ("b", 10, 14), ("c", 15, 15))
    claimed = ("claim 0 9 1", "claim 10 14 2", "claim 15 15 3", "claim 16 16 2", "claim 17 17 3")
    assert next_run(stage, 18, "abc", has=has, claimed=claimed) == "17 again"


def test_what_was_freed_is_anybodys(stage: Stage) -> None:
    claimed = ("claim 0 1 1", "claim 2 9 2", "free 2")
    assert next_run(stage, 10, "a", has=good(("a", 0, 1), ("b", 2, 3)), claimed=claimed) == "4 9"


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        (("0 a",), "1 1"),  # by this origin: another brings it
        (("0 a", "0 b"), "0 0"),  # by both: once more
        (("0 a", "0 a", "1 a", "1 a", "2 a", "2 a", "3 a", "3 a"), "wait"),
        (("0 a", "0 a", "0 b", "0 b", "1 a", "1 a", "1 b", "1 b"), "2 2"),
    ],
)
def test_what_an_origin_sent_damaged_is_left_to_others_first(
    stage: Stage, damaged: tuple[str, ...], expected: str
) -> None:
    assert next_run(stage, 4, damaged=damaged) == expected


def test_when_all_is_there_or_nobody_can_bring_it_there_is_no_more_to_do(stage: Stage) -> None:
    assert next_run(stage, 4, has=good(("a", 0, 3))) == ""
    everything = tuple(f"{chunk} {origin}" for chunk in range(4) for origin in "aabb")
    assert next_run(stage, 4, damaged=everything) == ""


def test_a_slot_that_ends_meanwhile_ends_no_other(stage: Stage) -> None:
    """Its file is there when the names are looked up, and gone when it is opened."""
    begun = 'FETCH=$RUN/fetch\nmkdir "$FETCH"\ncd "$FETCH"\n: >good; : >damaged; : >claimed\n'
    given = begun + "echo alive 1 a >alive.1\necho alive 2 b >alive.2\n"
    ended = 'ln -s gone alive.0\nmkfifo turn\nexec 4<>turn\necho >&4\ntake_run && echo "$run"'
    assert stage.sh(given + ended, COUNT="4", slot="1", origin="a", began="0").stdout == "0 0\n", "beside another"
