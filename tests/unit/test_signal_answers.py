"""What is answered from outside of whether anything may begin: two answers, and everything else is neither."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.signal_answers import LONGEST_WORDS, of_hook, of_prometheus
from netboot.machines.maintenance import Signal

HOOK, PROMETHEUS = "https://change.example", "https://prometheus.example"
ELSE = "it answers something else"
NUMBER = f"{ELSE} than one number"
NOW = 1_700_000_000.0
LATE = "its answer is of another time: a cache has it, or one of the two clocks is wrong"


def vector(*values: object, **more: object) -> dict[str, Any]:
    result = [{"metric": {"job": "x"}, "value": [1700000000.1, value]} for value in values]
    return {"status": "success", "data": {"resultType": "vector", "result": result}, **more}


def scalar(value: object, at: float = NOW) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "scalar", "result": [at, value]}}


@pytest.mark.parametrize(
    ("body", "signal"),
    [
        ('{"pause": false}', Signal(True, f"{HOOK} lets things begin")),
        ('{"pause": false, "reason": "all well"}', Signal(True, f"{HOOK} lets things begin")),
        ('{"pause": true}', Signal(False, f"{HOOK} says: pause")),
        ('{"pause": true, "reason": "Umbau in Halle 2, bis Montag"}', None),
        ('{"pause": true, "reason": "a\\u001b[2J\\n b"}', Signal(False, f"{HOOK} says: a [2J b")),
        (json.dumps({"pause": True, "reason": "x" * 9_000}), Signal(False, f"{HOOK} says: {'x' * LONGEST_WORDS}")),
    ],
)
def test_what_a_hook_says(body: str, signal: Signal | None) -> None:
    assert of_hook(body.encode(), HOOK) == (signal or Signal(False, f"{HOOK} says: Umbau in Halle 2, bis Montag"))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", f"{ELSE}: no JSON"),
        ("<html>", f"{ELSE}: no JSON"),
        ("[" * 100_000, f"{ELSE}: no JSON"),
        ('{"pause": true, "pause": false}', f"{ELSE}: no JSON"),
        ("{}", f"{ELSE}: pause: Field required"),
        ("false", f"{ELSE}: Input should be a valid dictionary or instance of _Hook"),
        ('{"pause": "false"}', f"{ELSE}: pause: Input should be a valid boolean"),
        ('{"pause": 0}', f"{ELSE}: pause: Input should be a valid boolean"),
        ('{"pause": null}', f"{ELSE}: pause: Input should be a valid boolean"),
        ('{"pause": false, "paused": true}', f"{ELSE}: paused: Extra inputs are not permitted"),
    ],
)
def test_what_no_hook_says(body: str, words: str) -> None:
    with pytest.raises(CannotTellError) as caught:
        of_hook(body.encode(), HOOK)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("answer", "signal"),
    [
        (vector("0"), Signal(True, f"the query of {PROMETHEUS} is 0, which lets things begin")),
        (scalar("-0"), Signal(True, f"the query of {PROMETHEUS} is 0, which lets things begin")),
        (scalar("3"), Signal(False, f"the query of {PROMETHEUS} is 3, and 0 alone lets things begin")),
        (vector("0.001"), Signal(False, f"the query of {PROMETHEUS} is 0.001, and 0 alone lets things begin")),
        (vector("-1"), Signal(False, f"the query of {PROMETHEUS} is -1, and 0 alone lets things begin")),
        (vector("+Inf"), Signal(False, f"the query of {PROMETHEUS} is inf, and 0 alone lets things begin")),
        (scalar("0", NOW - 300), Signal(True, f"the query of {PROMETHEUS} is 0, which lets things begin")),
        (vector("0", isPartial=False), Signal(True, f"the query of {PROMETHEUS} is 0, which lets things begin")),
        (vector("0", warnings=[], stats={}), Signal(True, f"the query of {PROMETHEUS} is 0, which lets things begin")),
    ],
)
def test_what_prometheus_says(answer: dict[str, Any], signal: Signal) -> None:
    assert of_prometheus(json.dumps(answer).encode(), PROMETHEUS, NOW) == signal


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (vector(), f"{NUMBER}: data.vector.result: List should have at least 1 item after validation, not 0"),
        (vector("0", "0"), f"{NUMBER}: data.vector.result: List should have at most 1 item after validation, not 2"),
        (vector("0", warnings=["a store is away"]), None),
        (vector("0", isPartial=True), f"{NUMBER}: isPartial: Input should be False"),
        *((scalar("0", at), LATE) for at in (0, NOW - 301, NOW + 301)),
        *((scalar("0", at), f"{ELSE}: no JSON") for at in (math.inf, math.nan)),
        (vector("NaN"), "the query is NaN, which is no number"),
        (vector("x"), NUMBER),
        (vector(0), f"{NUMBER}: data.vector.result.0.value.1: Input should be a valid string"),
        ({"status": "error", "errorType": "bad_data", "error": "x"}, f"{NUMBER}: status: Input should be 'success'"),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, None),
        ({"status": "success", "data": {"resultType": "string", "result": [1, "0"]}}, None),
        ({"pause": False}, f"{NUMBER}: status: Field required"),
    ],
)
def test_what_is_not_one_number(answer: dict[str, Any], words: str | None) -> None:
    with pytest.raises(CannotTellError) as caught:
        of_prometheus(json.dumps(answer).encode(), PROMETHEUS, NOW)
    assert str(caught.value) == words or (words is None and str(caught.value).startswith(NUMBER))


def test_what_cannot_be_compared_with_the_time_is_of_another() -> None:
    """No clock and no answer is NaN, and whatever were would let things begin by a comparison that is false."""
    with pytest.raises(CannotTellError) as caught:
        of_prometheus(json.dumps(scalar("0")).encode(), PROMETHEUS, math.nan)
    assert str(caught.value) == LATE


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["0", "1", "success", "vector", "scalar"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["pause", "reason", "status", "data", "result", "value"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=64))
def test_whatever_is_answered_only_the_one_answer_lets_things_begin(body: bytes) -> None:
    for read in (of_hook, lambda body, where: of_prometheus(body, where, 1.0)):
        try:
            said = read(body, "w")
        except CannotTellError as error:
            assert str(error)
            continue
        assert said.reason.isprintable()
        if said.may:
            parsed = json.loads(body)
            assert parsed.get("pause") is False if read is of_hook else parsed["status"] == "success"
