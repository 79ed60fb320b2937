"""What two parsers could read differently in a certificate request is refused, each with what it is."""

import dataclasses
import ipaddress

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests import certificate_requests as made
from tests.certificate_requests import (
    CONSTRAINTS,
    MICROSOFT,
    PRINTABLE,
    USAGE,
    address,
    attribute,
    body,
    dns,
    extension,
    oid,
    part,
    pem,
    signed,
    subject,
    value,
)
from tests.unit.tokens.test_csr import SERVING, denied, serving
from tokens.errors import CsrError
from tokens.pkcs10 import read

OWN = extension(dns("n1"))
OTHERS = extension(dns("kubernetes.default.svc"), address("10.96.0.1"))


@pytest.mark.parametrize(
    "attributes",
    [
        (attribute(OWN, kind=MICROSOFT), attribute(OTHERS)),
        (attribute(OWN), attribute(OTHERS)),
        (attribute(OTHERS), attribute(OWN, kind=MICROSOFT)),
        (attribute(OWN), attribute(OTHERS, kind=MICROSOFT)),
    ],
)
def test_two_lists_of_names_of_which_the_signer_reads_the_other(attributes: tuple[bytes, bytes]) -> None:
    """Root on a joined node had a serving certificate for kubernetes.default.svc by the first."""
    request = dataclasses.replace(SERVING, pem=pem(signed(body(*attributes))))
    assert (
        denied(serving, request) == "the request has more than one attribute; parsers differ in which of them they read"
    )


OF_A_KUBELET = b"""\
-----BEGIN CERTIFICATE REQUEST-----
MIIBPzCB5gIBADA+MRUwEwYDVQQKEwxzeXN0ZW06bm9kZXMxJTAjBgNVBAMTHHN5
c3RlbTpub2RlOndvcmtlci0xLmV4YW1wbGUwWTATBgcqhkjOPQIBBggqhkjOPQMB
BwNCAASdjbaKh9kSA2adcSaOOoFynJ6XSjbwHc01zd9PnEj0WwgXqTq0ufAwkIBO
dIQU5pUyigrjd6Ht2nDEuOU7CUGooEYwRAYJKoZIhvcNAQkOMTcwNTAzBgNVHREE
LDAqghB3b3JrZXItMS5leGFtcGxlhwTAAAIHhxAgAQ24AAAAAAAAAAAAAAAHMAoG
CCqGSM49BAMCA0gAMEUCIGvv/lrQoJEmm6nlrUQYLSCHk1hkshwTMOa9YyrsFYoE
AiEA1i+FRKY+V591BCPTMPfBLliWDVkwWmSuGSaOsqwn3Vc=
-----END CERTIFICATE REQUEST-----
"""


def test_what_go_writes_for_a_kubelet() -> None:
    """Made by x509.CreateCertificateRequest, as client-go's certificate manager does for the kubelet."""
    request = read(OF_A_KUBELET)
    assert (request.node, request.names) == ("worker-1.example", ("worker-1.example",))
    assert request.addresses == (ipaddress.ip_address("192.0.2.7"), ipaddress.ip_address("2001:db8::7"))


def test_what_kubelets_and_the_agent_write() -> None:
    plain = read(pem(signed(body())))
    assert (plain.node, plain.spki, plain.names, plain.addresses) == ("n1", made.spki(), (), ())
    go = read(pem(signed(body(attribute(OWN), named=subject("n1.example", PRINTABLE)))))
    assert (go.node, go.names) == ("n1.example", ("n1",))
    both = read(pem(signed(body(attribute(extension(dns("n1"), address("192.0.2.7"), address("2001:db8::7")))))))
    assert both.addresses == (ipaddress.ip_address("192.0.2.7"), ipaddress.ip_address("2001:db8::7"))


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP384R1()),
        rsa.generate_private_key(65537, 2048),
        ed25519.Ed25519PrivateKey.generate(),
    ],
    ids=["P-384", "RSA", "Ed25519"],
)
def test_every_kind_of_key(key: made.Key) -> None:
    assert read(pem(signed(body(key=made.spki(key)), key=key))).spki == made.spki(key)


def refusal(request: bytes) -> str:
    with pytest.raises(CsrError) as caught:
        read(request)
    return str(caught.value)


ONE_BLOCK = "must be exactly one PEM block of a certificate request"
ONE_WAY = "the PEM block is not written in the one strict way (RFC 7468: lines of 64, no spaces)"
GOOD = pem(signed(body()))


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (b"\n" + GOOD, ONE_BLOCK),
        (GOOD + b"\n", ONE_BLOCK),
        (GOOD + GOOD, ONE_BLOCK),
        (GOOD[:-1], ONE_BLOCK),
        (GOOD.replace(b"\n", b"\r\n"), ONE_BLOCK),
        (GOOD.replace(b"CERTIFICATE REQUEST", b"NEW CERTIFICATE REQUEST"), ONE_BLOCK),
        (GOOD.replace(b"-----\n", b"-----\nA: b\n\n", 1), "the PEM block is not base64"),
        (GOOD.replace(b"\n", b"\n\n", 2), ONE_WAY),
        (GOOD.replace(b"-----\nM", b"-----\nM\n", 1), ONE_WAY),
        (b"x" * 40_000, "a request of 40000 bytes; at most 32768 are looked at"),
    ],
)
def test_one_pem_block_written_in_one_way(request_: bytes, reason: str) -> None:
    assert refusal(request_) == reason


SUBJECT = "the subject must be exactly O=system:nodes and CN=system:node:<name>"
ORGANISATION, COMMON_NAME = part("55040a", b"system:nodes"), part("550403", b"system:node:n1")
STRINGS = "a text of the subject is neither a UTF8String nor a PrintableString"


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        (value(0x30, value(0x31, COMMON_NAME), value(0x31, ORGANISATION)), SUBJECT),
        (value(0x30, value(0x31, ORGANISATION, COMMON_NAME)), SUBJECT),
        (value(0x30, *[value(0x31, ORGANISATION)] * 2, value(0x31, COMMON_NAME)), SUBJECT),
        (value(0x30, value(0x31, part("55040a", b"system:nodes\0")), value(0x31, COMMON_NAME)), SUBJECT),
        # The text says that it is a byte shorter than its place.
        (
            value(0x30, value(0x31, ORGANISATION.replace(b"\x0c\x0c", b"\x0c\x0b")), value(0x31, COMMON_NAME)),
            SUBJECT,
        ),
        (subject(tag=0x14), STRINGS),
        (subject(tag=0x16), STRINGS),
        (subject(tag=0x1E), STRINGS),
    ],
)
def test_one_subject_in_texts_that_all_read_alike(named: bytes, reason: str) -> None:
    assert refusal(pem(signed(body(named=named)))) == reason


MORE_ATTRIBUTES = "the request has more than one attribute; parsers differ in which of them they read"
FORMS = "alternative names must be DNS names or addresses"
NO_NAME = "an alternative name is not a DNS name of letters, digits, hyphens and single dots"


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        (attribute(OWN) * 2, MORE_ATTRIBUTES),
        (
            attribute(OWN, kind=MICROSOFT),
            "the request's attribute is not PKCS#9's extension request (1.2.840.113549.1.9.14)",
        ),
        (attribute(OWN, more=[value(0x30, OTHERS)]), "bytes follow the extension request"),
        (
            value(0x30, oid(made.PKCS9), value(0x31)),
            "the extension request is missing, or of another type than is read here",
        ),
        (attribute(OWN, OWN), "the request has more than one extension"),
        (attribute(extension(kind=USAGE)), "the only extension of a request is the alternative names' (2.5.29.17)"),
        (
            attribute(extension(kind=CONSTRAINTS, critical=b"\x01\x01\xff")),
            "the only extension of a request is the alternative names' (2.5.29.17)",
        ),
        (
            attribute(extension(dns("n1"), critical=b"\x01\x01\xff")),
            "the alternative names are marked critical, or are none",
        ),
        (attribute(extension()), "the list of alternative names is empty"),
        (attribute(extension(value(0x81, b"a@example.com"))), FORMS),
        (attribute(extension(value(0xA0, oid("2b06010401823714"), b"\xa0\x00"))), FORMS),
        (attribute(extension(dns("n1\0.example"))), NO_NAME),
        (attribute(extension(dns("n1..example"))), NO_NAME),
        (attribute(extension(dns("n\u00e9"))), NO_NAME),
        (
            attribute(extension(address("::ffff:192.0.2.7"))),
            "an IPv4 address is written as IPv6; the signer would make another of it",
        ),
        (attribute(extension(value(0x87, bytes(5)))), "an address of 5 bytes; IPv4 has 4, IPv6 16"),
    ],
)
def test_one_list_of_names_and_addresses(attributes: bytes, reason: str) -> None:
    assert refusal(pem(signed(body(attributes)))) == reason


LENGTH = " is not strict DER: its length is indefinite, too long, or not the shortest"


def test_der_is_strict() -> None:
    tbs, key = body(), made.spki()
    der = signed(tbs)
    assert refusal(pem(der + b"\0")) == "bytes follow the request"
    assert refusal(pem(der[:-1])) == "the request is cut off"
    assert refusal(pem(signed(tbs, more=b"\x05\x00"))) == "bytes follow the signature"
    assert refusal(pem(der[:1] + b"\x82\0" + der[2:])) == "the request" + LENGTH
    assert refusal(pem(b"\x30\x80" + der[3:] + b"\0\0")) == "the request" + LENGTH
    long_subject = subject().replace(b"\x30", b"\x30\x81", 1)
    assert refusal(pem(signed(body(named=long_subject)))) == "the subject" + LENGTH
    assert refusal(pem(signed(body(version=b"\x02\x01\xff")))) == "the request's version is not that of PKCS#10 (0)"
    assert refusal(pem(signed(body(version=b"\x02\x02\0\0")))) == "the request's version is not that of PKCS#10 (0)"
    bare = value(0x30, b"\x02\x01\0", subject(), key)
    assert refusal(pem(signed(bare))) == "the list of attributes is missing, or of another type than is read here"


NOT_SIGNED = "the request is not signed by the key that it names"


def test_key_and_signature_fit_and_are_written_in_one_way() -> None:
    tbs, point = body(), made.KEY.public_key()
    kind = "the signature's algorithm does not fit the key, or is none of SHA-2 with ECDSA or RSA, Ed25519"
    sha1, with_parameters = "300906072a8648ce3d0401", "300c06082a8648ce3d0403020500"
    for algorithm in (made.RSA_SHA256, made.ED25519, bytes.fromhex(sha1), bytes.fromhex(with_parameters)):
        assert refusal(pem(signed(tbs, algorithm))) == kind
    assert refusal(pem(signed(tbs, made.ECDSA_SHA384))) == NOT_SIGNED
    other = ec.generate_private_key(ec.SECP256R1())
    assert refusal(pem(signed(tbs, key=other))) == NOT_SIGNED
    signature = made.sign(tbs)
    padded = signature[:1] + bytes([signature[1] + 1]) + b"\x02" + bytes([signature[3] + 1]) + b"\0" + signature[4:]
    request = value(0x30, tbs, made.ECDSA_SHA256, value(0x03, b"\0", padded))
    assert refusal(pem(request)) == NOT_SIGNED
    assert refusal(pem(value(0x30, tbs, made.ECDSA_SHA256, value(0x03, b"\1", signature)))) == (
        "the signature is not a whole number of bytes"
    )
    compressed = point.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint)
    name = value(0x30, oid("2a8648ce3d0201"), oid("2a8648ce3d030107"))
    squeezed = value(0x30, name, value(0x03, b"\0", compressed))
    assert (
        refusal(pem(signed(body(key=squeezed))))
        == "the key is not written in the one strict way (DER, points uncompressed)"
    )


@pytest.mark.parametrize(
    ("exponent", "modulus"), [(3, 2**2047 + 1), (65537, 2**2047), (65537, 2**8192 + 1)], ids=["three", "even", "long"]
)
def test_an_rsa_key_is_one_that_go_reads_too(exponent: int, modulus: int) -> None:
    public = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    key = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert refusal(pem(signed(body(key=key)))) == (
        "an RSA key must have the exponent 65537, an odd modulus, and at most 8192 bits"
    )
