"""Pydantic's first error, in the words of every message about a value that some program made."""

from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, ValidationError

from images.values.faults import first_fault, first_few, item_of
from images.values.strict import Strict


def even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


class Part(Strict):
    size: Annotated[int, AfterValidator(even)]


class Image(Strict):
    parts: tuple[Part, ...]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"parts": [{"size": 2}, {"size": 3}, {"size": "secret"}]}, "parts.1.size: must be even"),
        (
            {"parts": [{"size": "secret"}]},
            "parts.0.size: Input should be a valid integer, unable to parse string as an integer",
        ),
        ({}, "parts: Field required"),
        ([], "Input should be a valid dictionary or instance of Image"),
    ],
)
def test_it_says_where_and_what_and_never_the_value(value: object, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Image.model_validate(value)
    assert str(first_fault(caught.value)) == message


@pytest.mark.parametrize(
    ("items", "text"), [([], ""), ([3], "3"), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more")]
)
def test_a_long_list_is_cut_and_says_so(items: list[object], text: str) -> None:
    assert first_few(items, 2) == text


@pytest.mark.parametrize(
    ("location", "item"),
    [
        (("machines", 0, "profile"), "machines/gpu-001"),
        (("machines", 1, "name"), ""),
        (("machines", 2), ""),
        (("machines", 3), ""),
        (("machines",), ""),
        (("profiles", 0), ""),
        ((), ""),
    ],
)
def test_what_leads_into_an_item_that_has_a_name(location: tuple[int | str, ...], item: str) -> None:
    value: dict[str, Any] = {"machines": [{"name": "gpu-001"}, {"name": 1}, "text"], "profiles": {"0": {}}}
    assert item_of(location, value) == item
