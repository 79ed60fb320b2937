"""EK certificates, read in every form: whose TPM it is, by its maker's word. What vouches for one: `tokens.ekchain`."""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import Certificate

from tokens.errors import MalformedError, TokenError

LONGEST = 16_384
"""Bytes; TPMs keep a certificate of one or two thousand."""
_TPM = {"2.23.133.2.1": "manufacturer", "2.23.133.2.2": "model", "2.23.133.2.3": "version"}
E = TypeVar("E", bound=x509.ExtensionType)


@dataclass(frozen=True, slots=True)
class EkCertificate:
    """What an EK certificate says. `ek_sha256`: hex SHA-256 of its key's DER SubjectPublicKeyInfo: the pin."""

    ek_sha256: str
    subject: str
    issuer: str
    tpm: str
    """Manufacturer, model and version, as its maker wrote them."""
    certificate: Certificate = field(repr=False, compare=False)

    @property
    def der(self) -> bytes:
        """The certificate alone, without what padded it."""
        return self.certificate.public_bytes(serialization.Encoding.DER)


def read_certificate(data: bytes) -> Certificate:
    """One X.509 certificate: PEM, base64 of DER, or DER, with what pads it in a TPM's NV index behind it.

    Raises:
        MalformedError: not one, or one that cannot be read.
    """
    if len(data) > 2 * LONGEST:
        raise MalformedError(f"a certificate of {len(data)} bytes; at most {LONGEST} are looked at")
    with reading(MalformedError, "not a certificate that can be read"):
        if b"-----BEGIN" in data:
            return x509.load_pem_x509_certificate(data)
        return x509.load_der_x509_certificate(_unpadded(_from_base64(data)))


def read_certificates(data: bytes) -> list[Certificate]:
    """All certificates of a PEM file, or the one of a DER file.

    Raises:
        MalformedError: there is none, or one that cannot be read.
    """
    with reading(MalformedError, "not certificates that can be read"):
        if b"-----BEGIN" in data:
            return x509.load_pem_x509_certificates(data)
        return [x509.load_der_x509_certificate(data)]


def read_ek_certificate(data: bytes) -> EkCertificate:
    """An EK certificate in any of those forms.

    Raises:
        MalformedError: not one, or one that cannot be read: pin the EK by its hash in place of it.
    """
    certificate = read_certificate(data)
    with reading(MalformedError, "an EK certificate that cannot be read"):
        subject, issuer = name_of(certificate.subject), name_of(certificate.issuer)
        return EkCertificate(key_sha256(certificate.public_key()), subject, issuer, _tpm_of(certificate), certificate)


def key_sha256(key: object) -> str:
    """How an EK is pinned: hex SHA-256 of its DER SubjectPublicKeyInfo.

    Raises:
        MalformedError: neither RSA nor ECC.
    """
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        raise MalformedError("an EK is RSA or ECC, this is not")
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER, info)).hexdigest()


def read_public_key(data: bytes) -> str:
    """The pin of an EK's public key: PEM, base64 of DER, or DER (SubjectPublicKeyInfo).

    Raises:
        MalformedError: none of these, or neither RSA nor ECC.
    """
    with reading(MalformedError, "not a public key that can be read"):
        if b"-----BEGIN" in data:
            return key_sha256(serialization.load_pem_public_key(data))
        return key_sha256(serialization.load_der_public_key(_from_base64(data)))


def extension_of(certificate: Certificate, kind: type[E]) -> E | None:
    """What the certificate's extension of that kind says; None: it has none."""
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _tpm_of(certificate: Certificate) -> str:
    names = extension_of(certificate, x509.SubjectAlternativeName)
    labels = {}
    for name in names.get_values_for_type(x509.DirectoryName) if names is not None else ():
        for attribute in name:
            if label := _TPM.get(attribute.oid.dotted_string):
                labels[label] = _printable(str(attribute.value))
    return ", ".join(f"{label} {labels[label]}" for label in _TPM.values() if label in labels)


def name_of(name: x509.Name) -> str:
    """A distinguished name in printable characters, at most 200."""
    return _printable(name.rfc4514_string())


def _printable(text: str) -> str:
    return "".join(c if " " <= c <= "~" else "?" for c in text)[:200]


@contextmanager
def reading(kind: type[TokenError], summary: str) -> Iterator[None]:
    """`cryptography` reads lazily and has no common base of what it raises: whatever it is, the bytes are to blame."""
    try:
        yield
    except TokenError:
        raise
    except Exception as error:  # noqa: BLE001
        lines = str(error).splitlines()
        raise kind(f"{summary} ({_printable(lines[0]) if lines else type(error).__name__})") from None


def _from_base64(data: bytes) -> bytes:
    if data[:1] == b"\x30":
        return data
    try:
        return base64.b64decode(b"".join(data.split()), validate=True)
    except binascii.Error:
        raise ValueError("neither PEM, nor DER, nor base64") from None


def _unpadded(data: bytes) -> bytes:
    """The DER value alone: TPMs pad the NV index behind it with zeros or ones."""
    if len(data) > 4 and data[0] == 0x30 and data[1] == 0x82:
        length = 4 + int.from_bytes(data[2:4], "big")
        if set(data[length:]) <= {0x00} or set(data[length:]) <= {0xFF}:
            return data[:length]
    return data
