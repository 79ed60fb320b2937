"""A TPM maker of a test: roots, intermediates and EK certificates as the TCG's profile wants them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID, ObjectIdentifier

from tests.unit.tokens.soft import RSA_EK

AT = datetime(2026, 6, 1, tzinfo=UTC)
FLAGS = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)
EK_USAGE = ObjectIdentifier("2.23.133.8.1")
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Authority:
    certificate: x509.Certificate
    key: Key


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) if name else x509.Name([])


def authority(name: str, issuer: Authority | None = None, **more: Any) -> Authority:
    """`ca`, `path_length`, `sign`, `usage`, `until`, `critical`, `key` alter it."""
    key = more.get("key") or ec.generate_private_key(ec.SECP256R1())
    builder = _begun(name, issuer.certificate.subject if issuer else named(name), key, more.get("until", AT))
    if more.get("ca") is not None or "ca" not in more:
        constraints = x509.BasicConstraints(more.get("ca", True), more.get("path_length"))
        builder = builder.add_extension(constraints, critical=True)
    if "sign" in more:
        flags = ("digital_signature", "key_cert_sign") if more["sign"] else ("digital_signature",)
        builder = builder.add_extension(key_usage(flags), critical=True)
    if "usage" in more:
        builder = builder.add_extension(x509.ExtendedKeyUsage([more["usage"]]), critical=False)
    if "critical" in more:
        builder = builder.add_extension(x509.UnrecognizedExtension(more["critical"], b"\x05\x00"), critical=True)
    return Authority(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def key_usage(flags: Collection[str]) -> x509.KeyUsage:
    return x509.KeyUsage(**{flag: flag in flags for flag in FLAGS})


def ek_certificate(issuer: Authority, key: Key = RSA_EK, **more: Any) -> x509.Certificate:
    """`usage`, `key_usage` (names of bits), `ca`, `until`, `critical` alter it; `usage` or `key_usage` None: none."""
    builder = _begun("", issuer.certificate.subject, key, more.get("until", AT))
    directory = [("2.23.133.2.1", "id:53574B20"), ("2.23.133.2.2", "swtpm"), ("2.23.133.2.3", "id:20240125")]
    names = x509.Name([x509.NameAttribute(ObjectIdentifier(oid), value) for oid, value in directory])
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DirectoryName(names)]), critical=True)
    builder = builder.add_extension(x509.BasicConstraints(more.get("ca", False), None), critical=True)
    if more.get("usage", EK_USAGE) is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([more.get("usage", EK_USAGE)]), critical=False)
    flags = more.get("key_usage", ["key_encipherment" if isinstance(key, rsa.RSAPrivateKey) else "key_agreement"])
    if flags is not None:
        builder = builder.add_extension(key_usage(flags), critical=True)
    if "critical" in more:
        builder = builder.add_extension(x509.UnrecognizedExtension(more["critical"], b"\x05\x00"), critical=True)
    return builder.sign(issuer.key, hashes.SHA256())


def _begun(name: str, issuer: x509.Name, key: Key, until: datetime) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(AT - timedelta(days=365))
        .not_valid_after(until + timedelta(days=1))
    )


@cache
def maker() -> tuple[Authority, Authority]:
    """A root and an intermediate below it."""
    root = authority("Maker Root", path_length=1)
    return root, authority("Maker Intermediate", root, path_length=0)


def der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


def pem(*certificates: x509.Certificate) -> str:
    return "".join(one.public_bytes(serialization.Encoding.PEM).decode() for one in certificates)
