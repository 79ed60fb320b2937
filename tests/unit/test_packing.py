"""Packed columns of the state."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netboot.lifecycle.phases import Phase
from netboot.lifecycle.trace import Trace, apply
from netboot.stores import packing
from netboot.stores.packing import pack, unpack
from tests.records import event, script


@settings(deadline=None)
@given(st.text())
def test_what_was_packed_comes_out_again(text: str) -> None:
    assert unpack(pack(text)) == text.encode()


@pytest.mark.parametrize("body", ['{"a": 1}', b"{}", b"", None, 7, 0.5])
def test_what_was_never_packed_is_left_as_it_is(body: object) -> None:
    assert unpack(body) == body


def test_a_whole_boot_takes_a_quarter_of_its_text() -> None:
    trace: Trace = apply(None, script("gpu-001", 1))
    for place, phase in enumerate(Phase):
        if phase not in (Phase.SCRIPT_SERVED, Phase.FAILED):
            trace = apply(trace, event("gpu-001", 1, phase, 977 * place))
    text = trace.model_dump_json(exclude_defaults=True)
    assert len(pack(text)) < len(text) / 4
    assert Trace.model_validate_json(text) == trace


@pytest.mark.parametrize(
    "damage", [lambda body: body[:-1], lambda body: body + b"x", lambda body: body[:1] + b"\xff" * 9]
)
def test_what_is_damaged_is_no_text(damage: object) -> None:
    assert callable(damage)
    with pytest.raises(ValueError, match="what was packed is"):
        unpack(damage(pack('{"phase": "Booted"}' * 9)))


def test_more_than_any_row_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_BYTES", 100)
    assert unpack(pack("x" * 99)) == b"x" * 99
    with pytest.raises(ValueError, match="cut off, or more than it was"):
        unpack(pack("x" * 101))
