"""Pages of a list: all of it comes once, in order, whatever their size; and what is no place is refused."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.errors import BadClaimError
from netboot.web.pages import PageAsked, page


def asked(limit: int | None, after: str | None = None) -> PageAsked:
    return PageAsked.model_validate({"limit": limit, "continue": after})


@given(st.lists(st.text(min_size=1, max_size=63), max_size=30, unique=True), st.integers(1, 31))
def test_pages_are_the_whole(names: list[str], limit: int) -> None:
    found: list[str] = []
    after = None
    for _ in range(len(names) + 1):
        part, after = page(asked(limit, after), names, str)
        assert len(part) <= limit
        found += part
        if after is None:
            break
    assert (found, after) == (names, None)
    assert page(asked(None), names, str) == (names, None)


def test_without_a_limit_the_rest_comes_at_once() -> None:
    _, after = page(asked(1), ["a", "b", "c"], str)
    assert page(asked(None, after), ["a", "b", "c"], str) == (["b", "c"], None)
    assert page(asked(5, after), ["a", "b"], str) == (["b"], None)


@given(st.text(min_size=1, max_size=400))
def test_what_no_answer_gave_is_refused(text: str) -> None:
    given_by_an_answer = base64.urlsafe_b64encode(b"a").decode()
    if text != given_by_an_answer:
        with pytest.raises(BadClaimError) as refused:
            page(asked(1, text), ["a", "b"], str)
        assert refused.value.field == "continue"


@pytest.mark.parametrize("text", ["YQ", "YR==", "YQ==\n", " YQ==", "YQ=\u2028="])
def test_a_place_is_written_in_one_way(text: str) -> None:
    with pytest.raises(BadClaimError, match="is not what an answer gave"):
        page(asked(1, text), ["a", "b"], str)


def test_a_place_that_is_gone_is_said() -> None:
    _, after = page(asked(1), ["a", "b"], str)
    with pytest.raises(BadClaimError, match="what it goes on after is not there any more: begin again without it"):
        page(asked(1, after), ["b"], str)
