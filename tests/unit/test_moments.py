"""Moments in words, and as the whole API has them."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.clock import moment_ms, rfc3339
from netboot.web.app import api_document
from netboot.web.moments import described, on_wire

FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999
DURATIONS = {"uptime_ms", "clock_ms", "since_clock_ms", "blocked_clock_ms"}
"""Whose unit their name says."""
PLACES = {
    "Events.since": "a place in a stream",
    "SpanShown.until": "the name of a phase",
    "Strategy.deadline": "seconds, by the inventory's word",
}
NAMED = re.compile(r"[._](at|since|until|deadline|time|moment|date|heartbeat)$|_ms$|Time$")


@given(st.integers(FIRST, LAST))
def test_there_and_back(at_ms: int) -> None:
    text = rfc3339(at_ms)
    assert moment_ms(text) == at_ms
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    assert datetime.fromisoformat(text).utcoffset() is not None


@given(st.integers())
def test_a_machine_s_clock_may_say_anything(at_ms: int) -> None:
    assert moment_ms(rfc3339(at_ms)) == min(max(at_ms, FIRST), LAST)


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2023-11-14T23:15:00.0005+01:00", 1_700_000_100_000),
        ("2023-11-14T22:15:00.001-00:00", 1_700_000_100_001),
    ],
)
def test_any_zone_is_read(text: str, at_ms: int) -> None:
    assert moment_ms(text) == at_ms


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "2023-11-14", "2023-11-14T22:15:00", "2023-11-14 22:15:00Z", "2023-11-14t22:15:00z"),
        *(
            "20231114T221500Z",
            "2023-11-14T22:15Z",
            "2023-11-14T22:15:00Z\n",
            "2023-11-14T22:15:00+0100",
            "2023-11-14T22:15:00,5Z",
        ),
    ],
)
def test_what_could_be_read_in_two_ways_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="must be a moment with its zone, as RFC 3339 has it: 2026-11-24T08:00:00Z"):
        moment_ms(text)


@pytest.mark.parametrize("text", ["2023-02-30T00:00:00Z", "2023-11-14T24:00:01Z", "2023-11-14T22:15:60Z"])
def test_what_is_in_no_calendar_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is a moment of no calendar"):
        moment_ms(text)


def test_values_and_their_shape_have_the_same_names() -> None:
    inside: dict[str, Any] = {
        "since_ms": 0,
        "ended_ms": None,
        "uptime_ms": 5,
        "within": [{"at_ms": 1_700_000_100_001}],
        "at_ms": "x",
    }
    inside["labels"] = {"created_ms": "5", "at_ms": "rack 1"}
    assert on_wire(inside) == {
        "since": "1970-01-01T00:00:00.000Z",
        "ended_at": None,
        "uptime_ms": 5,
        "within": [{"at": "2023-11-14T22:15:00.001Z"}],
        "at_ms": "x",
        "labels": {"created_ms": "5", "at_ms": "rack 1"},
    }
    maybe = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Ended Ms"}
    shape = {"properties": {"since_ms": {"type": "integer"}, "ended_ms": maybe}, "required": ["since_ms"]}
    assert described({**shape, "description": "`since_ms`: when"}) == {
        "properties": {
            "since": {"type": "string", "format": "date-time", "title": "Since"},
            "ended_at": {
                "anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}],
                "default": None,
                "title": "Ended At",
            },
        },
        "required": ["since"],
        "description": "`since`: when",
    }


def test_every_moment_of_the_api_is_rfc_3339() -> None:
    found = {name: _formats(schema) for name, schema in _fields() if NAMED.search(name) and name not in PLACES}
    assert len(found) > 60
    wrong = {
        name for name, formats in found.items() if name.rpartition(".")[2] not in DURATIONS and formats != {"date-time"}
    }
    assert wrong == set()
    unnamed = {name for name, schema in _fields() if "date-time" in _formats(schema) and name not in found}
    assert unnamed == set()


def _fields() -> Iterator[tuple[str, dict[str, Any]]]:
    document = api_document()
    for shape, schema in document["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            yield f"{shape}.{name}", field
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for each in operation["parameters"]:
                if each["in"] == "query" and not path.endswith("/watch"):
                    yield f"{path}?.{each['name']}", each["schema"]


def _formats(schema: dict[str, Any]) -> set[str]:
    return {
        each.get("format", each["type"])
        for each in schema.get("anyOf", [schema])
        if each.get("type") != "null" and ("type" in each or "format" in each)
    }
