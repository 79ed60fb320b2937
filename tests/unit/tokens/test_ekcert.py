"""EK certificates: read in every form, believed only with a whole chain."""

import base64
import contextlib
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.x509.oid import ObjectIdentifier
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tokens import ek_certificates as ek
from tests.unit.tokens.ek_certificates import AT, Authority, authority, der, ek_certificate, maker, pem
from tests.unit.tokens.soft import ECC_EK, EK_ATTRIBUTES, RSA_EK, Key, public
from tokens.credential import spki_sha256
from tokens.ekcert import LONGEST, read_ek_certificate, read_public_key
from tokens.ekchain import verify_chain
from tokens.errors import ChainError, MalformedError, TokenError

CERTIFICATE = ek_certificate(maker()[1])
DER = der(CERTIFICATE)
SERVER, ANY = ObjectIdentifier("1.3.6.1.5.5.7.3.1"), ObjectIdentifier("2.5.29.37.0")
OTHER = "the EK certificate is for another use by its key usage:"


def chain(certificate: x509.Certificate, *authorities: Authority, at: datetime = AT) -> tuple[str, ...]:
    return verify_chain(read_ek_certificate(der(certificate)), [one.certificate for one in authorities], at)


@pytest.mark.parametrize(
    "data",
    [
        DER,
        DER + bytes(300),
        DER + b"\xff" * 9,
        base64.b64encode(DER),
        base64.encodebytes(DER),
        pem(CERTIFICATE).encode(),
    ],
    ids=["DER", "padded with zeros", "padded with ones", "base64", "base64 in lines", "PEM"],
)
def test_every_form_says_the_same(data: bytes) -> None:
    read = read_ek_certificate(data)
    assert read.ek_sha256 == spki_sha256(public(RSA_EK, EK_ATTRIBUTES, storage=True))
    assert (read.subject, read.issuer) == ("", "CN=Maker Intermediate")
    assert read.tpm == "manufacturer id:53574B20, model swtpm, version id:20240125"


def test_the_longest_that_is_looked_at() -> None:
    padded = DER.ljust(2 * LONGEST, b"\0")
    assert read_ek_certificate(padded) == read_ek_certificate(DER)
    with pytest.raises(MalformedError) as caught:
        read_ek_certificate(padded + b"\0")
    assert str(caught.value) == "a certificate of 32769 bytes; at most 16384 are looked at"


@pytest.mark.parametrize("key", [RSA_EK, ECC_EK])
def test_the_pin_is_the_one_that_join_computes(key: Key) -> None:
    pin = spki_sha256(public(key, EK_ATTRIBUTES, storage=True))
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    written = key.public_key().public_bytes(serialization.Encoding.DER, info)
    assert read_ek_certificate(der(ek_certificate(maker()[1], key))).ek_sha256 == pin
    assert read_public_key(written) == pin
    assert read_public_key(base64.b64encode(written)) == pin
    assert read_public_key(key.public_key().public_bytes(serialization.Encoding.PEM, info)) == pin


def test_a_chain_leads_to_a_root() -> None:
    root, intermediate = maker()
    stranger = authority("Another Root")
    same_name = authority("Maker Intermediate", stranger)
    assert chain(CERTIFICATE, root, intermediate) == ("CN=Maker Intermediate", "CN=Maker Root")
    assert chain(CERTIFICATE, stranger, same_name, root, intermediate) == ("CN=Maker Intermediate", "CN=Maker Root")
    assert chain(ek_certificate(root), root) == ("CN=Maker Root",)


def refusal(certificate: x509.Certificate, *authorities: Authority, at: datetime = AT) -> str:
    with pytest.raises(ChainError) as caught:
        chain(certificate, *authorities, at=at)
    return str(caught.value)


def test_no_chain_and_why() -> None:
    root, intermediate = maker()
    assert refusal(CERTIFICATE) == "no authority is named 'CN=Maker Intermediate'"
    assert refusal(CERTIFICATE, root) == "no authority is named 'CN=Maker Intermediate'"
    assert refusal(CERTIFICATE, intermediate) == "no authority is named 'CN=Maker Root'"
    forged = authority("Maker Intermediate", root)
    assert refusal(CERTIFICATE, root, forged) == "the signature of 'CN=Maker Intermediate' does not fit"
    self_named = Authority(authority("Maker Root", Authority(root.certificate, intermediate.key)).certificate, root.key)
    assert refusal(CERTIFICATE, self_named, intermediate) == "the signature of 'CN=Maker Root' does not fit"
    assert refusal(CERTIFICATE, root, intermediate, at=AT + timedelta(days=2)) == (
        "the EK certificate was valid until 2026-06-02"
    )
    assert refusal(CERTIFICATE, root, intermediate, at=AT - timedelta(days=900)) == (
        "the EK certificate is not valid before 2025-06-01"
    )


@pytest.mark.parametrize(
    ("altered", "words"),
    [
        ({"usage": SERVER}, "the EK certificate is for another use: its extended key usage is not an EK's"),
        ({"usage": ANY}, "the EK certificate is for another use: its extended key usage is not an EK's"),
        ({"usage": None}, "the EK certificate does not say that it is one: it has no extended key usage (TCG EK Cred"),
        ({"key_usage": None}, "the EK certificate does not say what its key is for: it has no key usage (TCG EK Cred"),
        ({"key_usage": ["key_agreement"]}, f"{OTHER} an RSA key of an EK has keyEncipherment (TCG EK Cred"),
        ({"key_usage": ["digital_signature"]}, f"{OTHER} an RSA key of an EK has keyEncipherment (TCG EK Cred"),
        ({"key_usage": ["key_encipherment"], "key": ECC_EK}, f"{OTHER} an ECC key of an EK has keyAgreement (TCG EK"),
        (
            {"key_usage": ["key_encipherment", "key_cert_sign"]},
            "the EK certificate is an authority's, not a TPM's: its key usage has keyCertSign",
        ),
        ({"ca": True}, "the EK certificate is an authority's, not a TPM's"),
        (
            {"critical": ObjectIdentifier("1.2.3.4")},
            "the EK certificate has a critical extension that is not understood",
        ),
    ],
)
def test_a_leaf_that_is_no_eks(altered: dict[str, Any], words: str) -> None:
    root, intermediate = maker()
    assert refusal(ek_certificate(intermediate, **altered), root, intermediate).startswith(words)


@pytest.mark.parametrize(
    ("altered", "words"),
    [
        ({"ca": False}, "is not an authority: its basic constraints do not say CA"),
        ({"ca": None}, "is not an authority: its basic constraints do not say CA"),
        ({"sign": False}, "may not sign certificates by its key usage"),
        ({"usage": SERVER}, "is for other certificates than EKs' by its extended key usage"),
        ({"until": AT - timedelta(days=30)}, "was valid until 2026-05-03"),
        ({"critical": ObjectIdentifier("1.2.3.4")}, "has a critical extension that is not understood (1.2.3.4)"),
    ],
)
def test_an_authority_that_is_none(altered: dict[str, Any], words: str) -> None:
    root, _ = maker()
    bad = authority("Bad", root, **altered)
    assert refusal(ek_certificate(bad), root, bad) == f"the authority 'CN=Bad' {words}"


@pytest.mark.parametrize("usage", [ek.EK_USAGE, ANY])
def test_an_authority_may_say_that_it_is_for_eks(usage: ObjectIdentifier) -> None:
    root, _ = maker()
    good = authority("Good", root, usage=usage, sign=True)
    assert chain(ek_certificate(good), root, good) == ("CN=Good", "CN=Maker Root")


@pytest.mark.parametrize(
    ("key", "flags"),
    [
        (ECC_EK, ["key_agreement"]),
        (ECC_EK, ["key_agreement", "digital_signature"]),
        (RSA_EK, ["key_encipherment", "digital_signature"]),
    ],
)
def test_an_ek_may_be_for_more_than_the_profile_says(key: Key, flags: list[str]) -> None:
    root, _ = maker()
    assert chain(ek_certificate(root, key, key_usage=flags), root) == ("CN=Maker Root",)


def test_a_root_that_allows_fewer_authorities_below_itself() -> None:
    root = authority("Short", path_length=0)
    middle = authority("Middle", root)
    assert chain(ek_certificate(root), root) == ("CN=Short",)
    assert refusal(ek_certificate(middle), root, middle) == (
        "the authority 'CN=Short' allows 0 authorities below itself, here are 1"
    )


def test_more_authorities_than_any_maker_has() -> None:
    made = [authority("A0")]
    for number in range(1, 8):
        made.append(authority(f"A{number}", made[-1]))
    assert len(chain(ek_certificate(made[5]), *made)) == 6
    assert refusal(ek_certificate(made[7]), *made) == "more than 6 authorities"


def test_a_weak_signature_is_no_signature() -> None:
    """Nothing makes such a certificate any more; the algorithm is altered in one of SHA-256."""
    key = rsa.generate_private_key(65537, 2048)
    root = authority("Root", key=key)
    good = der(ek_certificate(root))
    weak = good.replace(bytes.fromhex("2a864886f70d01010b"), bytes.fromhex("2a864886f70d010105"))
    assert weak.count(bytes.fromhex("2a864886f70d010105")) == 2
    with pytest.raises(ChainError, match="'' is signed with sha1: too weak"):
        verify_chain(read_ek_certificate(weak), [root.certificate], AT)


def test_a_time_without_a_zone_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="zone"):
        chain(CERTIFICATE, at=datetime(2026, 1, 1))  # noqa: DTZ001


def test_what_cannot_be_an_ek() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    root = authority("Root")
    builder = ek._begun("x", root.certificate.subject, key, AT)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="an EK is RSA or ECC, this is not"):
        read_ek_certificate(der(builder.sign(root.key, hashes.SHA256())))
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    with pytest.raises(MalformedError, match="an EK is RSA or ECC, this is not"):
        read_public_key(key.public_key().public_bytes(serialization.Encoding.DER, info))
    with pytest.raises(MalformedError, match="a certificate of 40000 bytes"):
        read_ek_certificate(bytes(40_000))
    with pytest.raises(MalformedError, match="neither PEM, nor DER, nor base64"):
        read_ek_certificate(b"%%%")


def everything(data: bytes) -> None:
    """All that may be done with bytes from a TPM; only errors of ours come out."""
    with contextlib.suppress(TokenError):
        read = read_ek_certificate(data)
        verify_chain(read, [one.certificate for one in maker()], AT)
    with contextlib.suppress(TokenError):
        read_public_key(data)


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=600))
def test_any_bytes(data: bytes) -> None:
    everything(data)
    everything(b"\x30" + data)
    everything(b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(data) + b"-----END CERTIFICATE-----\n")


@settings(max_examples=600, deadline=None)
@given(
    place=st.integers(0, len(DER) - 1),
    to=st.integers(0, 255),
    cut=st.integers(0, len(DER)),
    more=st.binary(max_size=12),
)
def test_any_alteration_of_a_good_one(place: int, to: int, cut: int, more: bytes) -> None:
    altered = bytearray(DER)
    altered[place] = to
    everything(bytes(altered))
    everything(bytes(altered[:cut]) + more + bytes(altered[cut:]))
    everything(bytes(altered[:cut]) + more)


def test_no_altered_byte_of_what_is_signed_leaves_the_chain_good() -> None:
    """Of the signature's own encoding one bit does: ASN.1 has a count of unused bits. It says nothing about the key."""
    root, intermediate = maker()
    begin = DER.index(CERTIFICATE.tbs_certificate_bytes)
    for place in range(begin, begin + len(CERTIFICATE.tbs_certificate_bytes)):
        altered = bytearray(DER)
        altered[place] ^= 1
        with pytest.raises(TokenError):
            verify_chain(read_ek_certificate(bytes(altered)), [root.certificate, intermediate.certificate], AT)
