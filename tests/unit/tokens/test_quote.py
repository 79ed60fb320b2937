"""Quotes: a good one is accepted; altered in any one place it is refused, for the right reason."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tokens.soft import AK_ATTRIBUTES, RSA_AK, SHA256, Exchange, public
from tokens import errors, wire
from tokens.quote import check_policy, verify_quote
from tokens.wire import Quote, Selection, read_public, read_quote, read_signature, sized

GOOD = Exchange()


def verify(sent: Exchange, expected: Exchange = GOOD) -> Quote:
    data = sent.quote()
    return verify_quote(data, sent.sign(data), sent.ak, expected.ek, expected.nonce, expected.selection, sent.pcrs)


@pytest.mark.parametrize(
    "exchange", [GOOD, Exchange(ak_key=RSA_AK, scheme=wire.ALG_RSASSA), Exchange(ak_key=RSA_AK, scheme=wire.ALG_RSAPSS)]
)
def test_a_good_quote_is_accepted(exchange: Exchange) -> None:
    quote = verify(exchange)
    assert (quote.reset_count, quote.restart_count, quote.safe) == (5, 6, True)


@pytest.mark.parametrize(
    ("altered", "error", "message"),
    [
        ({"magic": 0}, errors.NotAQuoteError, "not made inside a TPM (wrong magic)"),
        ({"kind": 0x8017}, errors.NotAQuoteError, "an attestation, but not a quote"),
        ({"nonce": bytes(32)}, errors.WrongNonceError, "the quote does not cover this exchange"),
        (
            {"hierarchy": 0x40000001},
            errors.WrongPlaceError,
            "the attestation key is not under the endorsement hierarchy of this TPM",
        ),
        (
            {"selection": (Selection(SHA256, (0,)),)},
            errors.WrongSelectionError,
            "the quote covers sha256:0, asked for was sha256:0,7",
        ),
        (
            {"ak_attributes": AK_ATTRIBUTES & ~(1 << 16)},
            errors.WeakAttestationKeyError,
            "the attestation key lacks restricted",
        ),
        (
            {"ak_attributes": AK_ATTRIBUTES | 1 << 17},
            errors.WeakAttestationKeyError,
            "the attestation key may also decrypt",
        ),
        (
            {"pcrs": {(SHA256, 0): bytes(32), (SHA256, 7): bytes(32)}},
            errors.WrongSelectionError,
            "nothing was ever measured into the sha256 bank",
        ),
    ],
)
def test_one_altered_field_is_refused_for_its_own_reason(
    altered: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        verify(Exchange(**altered))
    assert str(caught.value) == message


def test_a_short_rsa_attestation_key_is_refused() -> None:
    short = Exchange(ak_key=rsa.generate_private_key(65537, 1024), scheme=wire.ALG_RSASSA)
    with pytest.raises(errors.UnsupportedKeyError) as caught:
        verify(short)
    assert str(caught.value) == "an RSA attestation key of 1024 bits is too short"


@pytest.mark.parametrize(
    "given_pcrs", [{}, {(SHA256, 0): GOOD.pcrs[SHA256, 0]}, {**GOOD.pcrs, (SHA256, 11): bytes(32)}]
)
def test_the_values_given_are_exactly_those_that_were_quoted(given_pcrs: dict[tuple[int, int], bytes]) -> None:
    """One more would be judged by a policy though no TPM signed it."""
    data = GOOD.quote()
    with pytest.raises(errors.WrongSelectionError) as caught:
        verify_quote(data, GOOD.sign(data), GOOD.ak, GOOD.ek, GOOD.nonce, GOOD.selection, given_pcrs)
    assert str(caught.value) == "the PCR values given are not those that were quoted"


@pytest.mark.parametrize(
    ("read", "good"),
    [
        (read_public, sized(GOOD.ek.raw)),
        (read_public, sized(GOOD.ak.raw)),
        (read_quote, GOOD.quote()),
        (read_signature, GOOD.sign(GOOD.quote())),
    ],
    ids=["EK", "AK", "quote", "signature"],
)
def test_bytes_behind_a_structure_are_refused(read: Callable[[bytes], object], good: bytes) -> None:
    read(good)
    with pytest.raises(errors.MalformedError) as caught:
        read(good + b"\0")
    assert str(caught.value) == "1 bytes too many"


def test_bytes_behind_a_public_area_are_refused() -> None:
    with pytest.raises(errors.MalformedError) as caught:
        read_public(sized(GOOD.ek.raw + b"\0"))
    assert str(caught.value) == "1 bytes too many"


def test_another_tpm_s_ek_is_refused() -> None:
    with pytest.raises(errors.WrongPlaceError):
        verify(GOOD, Exchange(ek_key=RSA_AK))


@given(st.integers(0, len(GOOD.quote()) * 8 - 1))
def test_a_quote_with_any_bit_flipped_is_refused(bit: int) -> None:
    data = bytearray(GOOD.quote())
    signature = GOOD.sign(bytes(data))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises((errors.NotAQuoteError, errors.BadQuoteSignatureError)):
        verify_quote(bytes(data), signature, GOOD.ak, GOOD.ek, GOOD.nonce, GOOD.selection, GOOD.pcrs)


@given(st.sampled_from([(SHA256, 0), (SHA256, 7)]), st.integers(0, 255))
def test_other_pcr_values_than_the_quoted_are_refused(key: tuple[int, int], bit: int) -> None:
    value = bytearray(GOOD.pcrs[key])
    value[bit // 8] ^= 1 << bit % 8
    data = GOOD.quote()
    with pytest.raises(errors.PcrMismatchError):
        pcrs = {**GOOD.pcrs, key: bytes(value)}
        verify_quote(data, GOOD.sign(data), GOOD.ak, GOOD.ek, GOOD.nonce, GOOD.selection, pcrs)


def test_a_policy_names_the_pcr_that_differs() -> None:
    check_policy(GOOD.pcrs, {})
    check_policy(GOOD.pcrs, {(SHA256, 7): frozenset({b"\x22" * 32})})
    with pytest.raises(errors.PolicyError) as caught:
        check_policy(GOOD.pcrs, {(SHA256, 7): frozenset({b"\x23" * 32})})
    assert str(caught.value) == f"PCR 7 of sha256 is {'22' * 32}, which is not allowed"
    with pytest.raises(errors.PolicyError) as caught:
        check_policy(GOOD.pcrs, {(SHA256, 11): frozenset({b"\x23" * 32})})
    assert str(caught.value) == "PCR 11 of sha256 was not quoted"


def test_the_nonce_covers_every_part_and_where_it_ends() -> None:
    parts = (b"state", b"secret", b"spki")
    assert wire.quote_nonce(*parts) != wire.quote_nonce(b"states", b"ecret", b"spki")
    expected = hashlib.sha256(b"netboot.dev/attest/v1\0\0\0\5state\0\0\0\6secret\0\0\0\4spki").digest()
    assert wire.quote_nonce(*parts) == expected


MUTATED = st.sampled_from([sized(GOOD.ek.raw), sized(GOOD.ak.raw), GOOD.quote(), GOOD.sign(b"")]).flatmap(
    lambda good: st.tuples(st.just(good), st.integers(0, len(good) - 1), st.binary(max_size=4))
)


@given(st.binary(max_size=300) | MUTATED.map(lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + 1 :]))
def test_readers_raise_nothing_but_their_own_errors(data: bytes) -> None:
    for reader in (read_public, read_quote, read_signature):
        try:
            reader(data)
        except errors.TokenError as error:
            assert str(error)


def test_a_public_area_that_is_no_key_is_refused_when_it_is_used() -> None:
    raw = bytearray(public(Exchange().ak_key, AK_ATTRIBUTES, storage=False, scheme=wire.ALG_ECDSA).raw)
    raw[-1] ^= 1
    with pytest.raises(errors.MalformedError, match="not a usable public key"):
        data = GOOD.quote()
        ak = read_public(sized(bytes(raw)))
        verify_quote(data, GOOD.sign(data), ak, GOOD.ek, GOOD.nonce, GOOD.selection, GOOD.pcrs)
