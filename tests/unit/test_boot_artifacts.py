"""`Range` and conditional headers, by example and by Hypothesis."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.boot.artifacts import none_match, still_same, wanted_span


@pytest.mark.parametrize(
    ("header", "span"),
    [
        (None, "whole"),
        ("bytes=0-0", (0, 1)),
        ("bytes=0-99", (0, 100)),
        ("bytes=0-100", (0, 100)),
        ("bytes=10-", (10, 90)),
        ("bytes=99-", (99, 1)),
        ("bytes=-1", (99, 1)),
        ("bytes=-1000", (0, 100)),
        ("BYTES=0-0", (0, 1)),
        ("bytes= 5-6 ", (5, 2)),
        ("bytes=100-", "unsatisfiable"),
        ("bytes=100-200", "unsatisfiable"),
        ("bytes=-0", "unsatisfiable"),
        ("bytes=5-4", "whole"),
        ("bytes=-", "whole"),
        ("bytes=", "whole"),
        ("bytes=0-1,5-6", "whole"),
        ("bytes=0-0," * 1_000, "whole"),
        ("lines=0-1", "whole"),
        ("bytes=0x1-2", "whole"),
        ("bytes=+1-2", "whole"),
        ("bytes=१-२", "whole"),
        ("bytes=1-" + "9" * 40, "whole"),
        ("0-1", "whole"),
    ],
)
def test_what_a_range_means_for_a_hundred_bytes(header: str | None, span: object) -> None:
    assert wanted_span(header, 100) == span


def test_nothing_of_an_empty_file_can_be_asked_for() -> None:
    assert wanted_span("bytes=0-", 0) == wanted_span("bytes=-5", 0) == "unsatisfiable"
    assert wanted_span(None, 0) == "whole"


@given(st.text(max_size=80), st.integers(min_value=0, max_value=2**50))
def test_any_text_gives_bytes_of_the_file_or_a_plain_answer(header: str, size: int) -> None:
    span = wanted_span(header, size)
    if not isinstance(span, str):
        assert 0 <= span[0] < span[0] + span[1] <= size


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_satisfiable_range_is_exactly_what_was_asked_for(size: int, first: int, more: int) -> None:
    span = wanted_span(f"bytes={first}-{first + more}", size)
    data = range(size)[first : first + more + 1]
    assert span == ((data.start, len(data)) if len(data) else "unsatisfiable")


@pytest.mark.parametrize(
    ("header", "matches"),
    [
        ('"abc"', True),
        ('W/"abc"', True),
        ('"x", "abc"', True),
        ('"x",W/"abc"', True),
        ("*", True),
        ('"ab"', False),
        ("abc", False),
        ("", False),
        ('"abc', False),
    ],
)
def test_none_match_compares_weakly(header: str, matches: bool) -> None:
    assert none_match(header, '"abc"') is matches


def test_if_range_compares_strongly_and_no_date_matches() -> None:
    assert still_same(' "abc" ', '"abc"')
    assert not still_same('W/"abc"', '"abc"')
    assert not still_same("Wed, 21 Oct 2015 07:28:00 GMT", '"abc"')
