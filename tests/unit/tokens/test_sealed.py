"""Sealed state: only what was sealed here, for this purpose, not long ago, comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokens import errors
from tokens.sealed import SKEW_MS, Keyset, SealingKey

OLD, NEW, OTHER = SealingKey(b"o" * 32), SealingKey(b"n" * 32), SealingKey(b"x" * 32)
NOW, LIFE = 1_000_000_000, 120_000
SEALED = Keyset([OLD]).seal(b"body", b"hello/site/cluster", NOW, LIFE)


@given(st.binary(max_size=500), st.binary(max_size=30), st.integers(0, 2**50))
def test_what_was_sealed_comes_back(body: bytes, purpose: bytes, now: int) -> None:
    sealed = Keyset([OLD]).seal(body, purpose, now, LIFE)
    assert Keyset([NEW, OLD]).open(sealed, purpose, now + LIFE) == body


@pytest.mark.parametrize(
    ("keys", "purpose", "now", "error", "message"),
    [
        (
            [OTHER],
            b"hello/site/cluster",
            NOW,
            errors.UnknownKeyError,
            "sealed under a key that is not in use here (any more)",
        ),
        ([OLD], b"other", NOW, errors.ForgedStateError, "the seal does not fit: altered, or made for another purpose"),
        (
            [OLD],
            b"hello/site/cluster",
            NOW + LIFE + SKEW_MS + 1000,
            errors.ExpiredStateError,
            "expired 31 s ago by this clock: start again with hello",
        ),
        (
            [OLD],
            b"hello/site/cluster",
            NOW - 600_000,
            errors.FutureStateError,
            "sealed by a clock that is 600 s ahead of this one: check NTP on both replicas",
        ),
    ],
)
def test_anything_else_is_refused_for_its_own_reason(
    keys: list[SealingKey], purpose: bytes, now: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        Keyset(keys).open(SEALED, purpose, now)
    assert str(caught.value) == message


def test_a_replica_whose_clock_is_25_s_behind_still_opens() -> None:
    assert Keyset([OLD]).open(SEALED, b"hello/site/cluster", NOW - 25_000) == b"body"


@given(st.integers(0, len(SEALED) * 8 - 1))
def test_any_flipped_bit_is_noticed(bit: int) -> None:
    data = bytearray(SEALED)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises((errors.ForgedStateError, errors.UnknownKeyError)):
        Keyset([OLD]).open(bytes(data), b"hello/site/cluster", NOW)


@given(st.binary(max_size=100))
def test_any_bytes_are_opened_or_refused(data: bytes) -> None:
    with pytest.raises(errors.StateError):
        Keyset([OLD]).open(data, b"", NOW)


def test_keys_never_show() -> None:
    assert repr(OLD) == "SealingKey()"
    assert "ooo" not in repr(Keyset([OLD]))
    with pytest.raises(ValueError, match="32 bytes"):
        SealingKey(b"short")


@pytest.mark.parametrize("size", [0, 1, 47])
def test_what_is_too_short_to_be_sealed_says_so(size: int) -> None:
    with pytest.raises(errors.ForgedStateError) as caught:
        Keyset([OLD]).open(SEALED[:size], b"hello/site/cluster", NOW)
    assert str(caught.value) == "too short to be a sealed state"


def test_a_keyset_has_a_key() -> None:
    with pytest.raises(ValueError, match="a keyset needs at least one key"):
        Keyset([])
