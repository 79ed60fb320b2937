"""The CSR policy: one good request of each kind, and every way of bending it, with its reason."""

import dataclasses
import ipaddress
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from tokens.binding import binding_group
from tokens.csr import CLIENT_SIGNER, SERVING_SIGNER, Request, check_client, check_renewal, check_serving, node_of
from tokens.errors import CsrError

KEY, OTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
SPKI = KEY.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
SUBJECT = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, "system:node:n1")]


def pem(subject: Any = None, sans: list[x509.GeneralName] | None = None, key: Any = KEY, signer: Any = None) -> bytes:
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in subject or SUBJECT])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    if sans is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


CLIENT = Request(
    signer=CLIENT_SIGNER,
    username="system:bootstrap:abc123",
    groups=frozenset(
        {"system:bootstrappers", "system:bootstrappers:netboot", binding_group("n1", SPKI), "system:authenticated"}
    ),
    usages=("digital signature", "client auth"),
    expiration_seconds=86400,
    pem=pem(),
)
NODE: dict[str, Any] = {"username": "system:node:n1", "groups": frozenset({"system:nodes", "system:authenticated"})}
RENEWAL = dataclasses.replace(CLIENT, **NODE)
SANS = [x509.DNSName("n1"), x509.IPAddress(ipaddress.ip_address("192.0.2.7"))]
SERVING = dataclasses.replace(
    RENEWAL, signer=SERVING_SIGNER, usages=("digital signature", "server auth"), pem=pem(sans=SANS)
)


def client(request: Request) -> str:
    return check_client(request, allowed=True, because="")


def serving(request: Request) -> str:
    return check_serving(request, names={"N1"}, addresses={"192.0.2.7"}, allowed=True, because="")


def denied(check: Any, request: Request) -> str:
    with pytest.raises(CsrError) as caught:
        check(request)
    return str(caught.value)


def test_good_requests_are_approved() -> None:
    assert client(CLIENT) == "n1"
    assert check_renewal(RENEWAL, allowed=True, because="") == "n1"
    assert serving(SERVING) == "n1"
    assert node_of(CLIENT) == "n1"


SUBJECT_RULE = "the subject must be exactly O=system:nodes and CN=system:node:<name>"
USAGE_RULE = "the usages must be digital signature and client auth, and at most key encipherment beside"


@pytest.mark.parametrize(
    ("altered", "reason"),
    [
        ({"signer": SERVING_SIGNER}, f"signer {SERVING_SIGNER} is not {CLIENT_SIGNER}"),
        ({"username": "system:node:n1"}, "asked for by somebody who is not a bootstrap token"),
        ({"username": "system:bootstrap:abc123\n"}, "asked for by somebody who is not a bootstrap token"),
        (
            {"groups": CLIENT.groups - {"system:bootstrappers:netboot"}},
            "asked for with a bootstrap token that is not of netboot's making",
        ),
        (
            {"groups": CLIENT.groups - {binding_group("n1", SPKI)}},
            "the token was not issued for node n1 with this key",
        ),
        ({"pem": pem(key=OTHER)}, "the token was not issued for node n1 with this key"),
        (
            {"pem": pem([SUBJECT[0], (NameOID.COMMON_NAME, "system:node:n2")])},
            "the token was not issued for node n2 with this key",
        ),
        ({"pem": pem([SUBJECT[1]])}, SUBJECT_RULE),
        ({"pem": pem([*SUBJECT, (NameOID.ORGANIZATION_NAME, "system:masters")])}, SUBJECT_RULE),
        ({"pem": pem([*SUBJECT, (NameOID.COUNTRY_NAME, "JP")])}, SUBJECT_RULE),
        ({"pem": pem([SUBJECT[0], (NameOID.COMMON_NAME, "system:node:N1")])}, SUBJECT_RULE),
        ({"pem": pem([SUBJECT[0], (NameOID.COMMON_NAME, "n1")])}, SUBJECT_RULE),
        (
            {"pem": pem(sans=[x509.DNSName("n1")])},
            "a node's client certificate has no alternative names and no other extensions",
        ),
        ({"pem": pem() + pem()}, "must be exactly one PEM block of a certificate request"),
        ({"pem": b"x" + pem()}, "must be exactly one PEM block of a certificate request"),
        ({"usages": ("digital signature", "client auth", "server auth")}, USAGE_RULE),
        ({"usages": ("client auth",)}, USAGE_RULE),
        ({"usages": ("digital signature", "client auth", "client auth")}, USAGE_RULE),
        ({"expiration_seconds": 31536000}, "expirationSeconds must be between 600 and 86400, it is 31536000"),
        ({"expiration_seconds": None}, "expirationSeconds must be between 600 and 86400, it is None"),
    ],
)
def test_a_bent_client_request_is_denied(altered: dict[str, Any], reason: str) -> None:
    assert denied(client, dataclasses.replace(CLIENT, **altered)) == reason


def test_a_weak_key_is_denied() -> None:
    key = rsa.generate_private_key(65537, 1024)
    reason = denied(client, dataclasses.replace(CLIENT, pem=pem(key=key)))
    assert reason == "the key must be ECDSA P-256 or P-384, Ed25519, or RSA of at least 2048 bits"


def test_the_inventory_has_the_last_word() -> None:
    with pytest.raises(CsrError) as caught:
        check_client(CLIENT, allowed=False, because="the machine is retired")
    assert str(caught.value) == "node n1 may not join now: the machine is retired"
    with pytest.raises(CsrError) as caught:
        check_renewal(RENEWAL, allowed=False, because="the machine is retired")
    assert str(caught.value) == "node n1 may not renew: the machine is retired"


@pytest.mark.parametrize(
    ("altered", "reason"),
    [
        ({"username": "system:node:n2"}, "asked for by system:node:n2, only system:node:n1 may"),
        ({"username": "system:bootstrap:abc123"}, "asked for by system:bootstrap:abc123, only system:node:n1 may"),
        ({"groups": frozenset({"system:authenticated"})}, "asked for by somebody outside system:nodes"),
    ],
)
def test_nobody_renews_for_another(altered: dict[str, Any], reason: str) -> None:
    bent = dataclasses.replace(RENEWAL, **altered)
    assert denied(lambda r: check_renewal(r, allowed=True, because=""), bent) == reason


@pytest.mark.parametrize(
    ("sans", "reason"),
    [
        (None, "a serving certificate has alternative names, and no other extension"),
        ([x509.DNSName("n2")], "the name n2 is not this machine's"),
        ([x509.DNSName("*.n1")], "the name *.n1 may not be served by a node"),
        ([x509.DNSName("kubernetes.default.svc")], "the name kubernetes.default.svc may not be served by a node"),
        ([x509.IPAddress(ipaddress.ip_address("192.0.2.8"))], "the address 192.0.2.8 is not this machine's"),
        ([x509.RFC822Name("a@example.com")], "alternative names must be DNS names or addresses"),
        ([x509.UniformResourceIdentifier("http://n1")], "alternative names must be DNS names or addresses"),
    ],
)
def test_a_serving_certificate_is_for_this_machine_s_own_names(
    sans: list[x509.GeneralName] | None, reason: str
) -> None:
    assert denied(serving, dataclasses.replace(SERVING, pem=pem(sans=sans))) == reason


def test_a_kubelet_s_own_requests_may_leave_the_lifetime_to_the_signer() -> None:
    unsaid: dict[str, Any] = {"expiration_seconds": None}
    assert check_renewal(dataclasses.replace(RENEWAL, **unsaid), allowed=True, because="") == "n1"
    assert serving(dataclasses.replace(SERVING, **unsaid)) == "n1"
    year: dict[str, Any] = {"expiration_seconds": 31536000}
    words = "expirationSeconds must be between 600 and 86400, it is 31536000"
    assert denied(lambda r: check_renewal(r, allowed=True, because=""), dataclasses.replace(RENEWAL, **year)) == words
    assert denied(serving, dataclasses.replace(SERVING, **year)) == words


@given(st.integers(0, len(CLIENT.pem) - 1), st.binary(max_size=3))
def test_a_request_altered_anywhere_is_denied_or_the_same(at: int, insert: bytes) -> None:
    altered = CLIENT.pem[:at] + insert + CLIENT.pem[at + 1 :]
    try:
        client(dataclasses.replace(CLIENT, pem=altered))
    except CsrError as error:
        assert str(error)
    else:
        parsed = x509.load_pem_x509_csr(altered)
        assert parsed.public_bytes(serialization.Encoding.DER) == x509.load_pem_x509_csr(CLIENT.pem).public_bytes(
            serialization.Encoding.DER
        )


@given(st.binary(max_size=200))
def test_any_bytes_are_denied(data: bytes) -> None:
    with pytest.raises(CsrError):
        node_of(dataclasses.replace(CLIENT, pem=data))


@given(st.binary(max_size=120))
def test_any_der_in_a_pem_block_is_denied(data: bytes) -> None:
    import base64

    block = b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.b64encode(data) + b"\n-----END CERTIFICATE REQUEST-----\n"
    with pytest.raises(CsrError):
        node_of(dataclasses.replace(CLIENT, pem=block))
