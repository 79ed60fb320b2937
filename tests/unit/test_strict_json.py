"""JSON that any two parsers read alike, or not at all."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.values import strict_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=9)


@given(VALUES)
def test_what_is_written_is_read(value: Any) -> None:
    assert strict_json.read(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"a": 1, "b": 2, "a": 1}', 'an object with "a" twice'),
        (b'[{"b": {"a": 1, "\\u0061": 2}}]', 'an object with "a" twice'),
        (b'{"\\n\\u001b": 1, "\\n\\u001b": 1}', 'an object with "\\n\\u001b" twice'),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8 text"),
        ('{"a": 1}'.encode("utf-16-le"), "not JSON: Expecting property name enclosed in double quotes: line 1 column"),
        ('{"a": 1}'.encode("utf-8-sig"), "not JSON: Unexpected UTF-8 BOM (decode using utf-8-sig): line 1 column 1"),
        (b"", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"NaN", "a number that nobody can write down: NaN"),
        (b"[-Infinity]", "a number that nobody can write down: -Infinity"),
        (b"1e400", "a number that nobody can write down: 1e400"),
        (b"9" * 5_000, "a number of 5000 digits"),
        (b"[" * 60_000, "nested too deep"),
        (b'{"a":' * 60_000, "nested too deep"),
    ],
)
def test_what_two_could_read_in_two_ways_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(ValueError) as refused:
        strict_json.read(body)
    assert str(refused.value).startswith(why)


@given(st.binary() | st.text(alphabet='{}[]",:0aeN-\\').map(str.encode))
def test_whatever_comes_is_read_or_refused_in_words(body: bytes) -> None:
    try:
        read = strict_json.read(body)
    except ValueError as error:
        assert str(error)
    else:
        assert not isinstance(read, float) or math.isfinite(read)
