"""EK certificates: whose TPM it is, by its maker's word. A condition of enrolment only: a chain proves *some* TPM.

The walk is explicit, for general X.509 verifiers refuse EK certificates: an empty subject, a critical subjectAltName of
a directoryName alone, an extended key usage of their own (TCG "EK Credential Profile" 2.5, sections 3.2 and 3.5).
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import Certificate
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, ObjectIdentifier

from tokens.errors import ChainError, MalformedError, TokenError

EK_USAGE = ObjectIdentifier("2.23.133.8.1")
"""tcg-kp-EKCertificate."""
_PIN_IT = "(TCG EK Credential Profile, 3.2); where the maker's are so, pin the EK by its hash"
LONGEST = 16_384
"""Bytes; TPMs keep a certificate of one or two thousand."""
DEEPEST = 6
"""Certificates from the TPM's to the root; makers have three or four."""
_TPM = {"2.23.133.2.1": "manufacturer", "2.23.133.2.2": "model", "2.23.133.2.3": "version"}
_UNDERSTOOD = {
    ExtensionOID.BASIC_CONSTRAINTS,
    ExtensionOID.KEY_USAGE,
    ExtensionOID.EXTENDED_KEY_USAGE,
    ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
    ExtensionOID.CERTIFICATE_POLICIES,
}
E = TypeVar("E", bound=x509.ExtensionType)
_WEAK = (hashes.MD5, hashes.SHA1)


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
    with _reading(MalformedError, "not a certificate that can be read"):
        if b"-----BEGIN" in data:
            return x509.load_pem_x509_certificate(data)
        return x509.load_der_x509_certificate(_unpadded(_from_base64(data)))


def read_certificates(data: bytes) -> list[Certificate]:
    """All certificates of a PEM file, or the one of a DER file.

    Raises:
        MalformedError: there is none, or one that cannot be read.
    """
    with _reading(MalformedError, "not certificates that can be read"):
        if b"-----BEGIN" in data:
            return x509.load_pem_x509_certificates(data)
        return [x509.load_der_x509_certificate(data)]


def read_ek_certificate(data: bytes) -> EkCertificate:
    """An EK certificate in any of those forms.

    Raises:
        MalformedError: not one, or one that cannot be read: pin the EK by its hash in place of it.
    """
    certificate = read_certificate(data)
    with _reading(MalformedError, "an EK certificate that cannot be read"):
        subject, issuer = _name(certificate.subject), _name(certificate.issuer)
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
    with _reading(MalformedError, "not a public key that can be read"):
        if b"-----BEGIN" in data:
            return key_sha256(serialization.load_pem_public_key(data))
        return key_sha256(serialization.load_der_public_key(_from_base64(data)))


def verify_chain(ek: EkCertificate, authorities: Sequence[Certificate], at: datetime) -> tuple[str, ...]:
    """The names from the EK certificate's issuer to the root. Of `authorities`, those that sign themselves are roots.

    Raises:
        ChainError: why there is no chain. ValueError: a time without a zone.
    """
    if at.tzinfo is None:
        raise ValueError("the time must have a zone")
    with _reading(ChainError, "a certificate of the chain cannot be read"):
        _check_leaf(ek.certificate, at.astimezone(UTC))
        return _climb(ek.certificate, tuple(authorities), at.astimezone(UTC), 0)


def _check_leaf(certificate: Certificate, at: datetime) -> None:
    _check_any(certificate, at, "the EK certificate")
    constraints = _extension(certificate, x509.BasicConstraints)
    if constraints is not None and constraints.ca:
        raise ChainError("the EK certificate is an authority's, not a TPM's")
    usages = _extension(certificate, x509.ExtendedKeyUsage)
    if usages is None:
        raise ChainError(f"the EK certificate does not say that it is one: it has no extended key usage {_PIN_IT}")
    if EK_USAGE not in list(usages):
        raise ChainError("the EK certificate is for another use: its extended key usage is not an EK's (2.23.133.8.1)")
    _check_key_usage(certificate)


def _check_key_usage(certificate: Certificate) -> None:
    """What an EK does: TPMs decrypt with one of RSA, and agree with one of ECC. It may say more, but not that it signs
    certificates."""
    usage = _extension(certificate, x509.KeyUsage)
    if usage is None:
        raise ChainError(f"the EK certificate does not say what its key is for: it has no key usage {_PIN_IT}")
    if usage.key_cert_sign:
        raise ChainError("the EK certificate is an authority's, not a TPM's: its key usage has keyCertSign")
    rsa_key = isinstance(certificate.public_key(), rsa.RSAPublicKey)
    if not (usage.key_encipherment if rsa_key else usage.key_agreement):
        wanted = "an RSA key of an EK has keyEncipherment" if rsa_key else "an ECC key of an EK has keyAgreement"
        raise ChainError(f"the EK certificate is for another use by its key usage: {wanted} {_PIN_IT}")


def _check_any(certificate: Certificate, at: datetime, what: str) -> None:
    for extension in certificate.extensions:
        if extension.critical and extension.oid not in _UNDERSTOOD:
            raise ChainError(f"{what} has a critical extension that is not understood ({extension.oid.dotted_string})")
    if at < certificate.not_valid_before_utc:
        raise ChainError(f"{what} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d}")
    if at > certificate.not_valid_after_utc:
        raise ChainError(f"{what} was valid until {certificate.not_valid_after_utc:%Y-%m-%d}")


def _climb(child: Certificate, authorities: tuple[Certificate, ...], at: datetime, below: int) -> tuple[str, ...]:
    """Through every authority that has the issuer's name; `below`: authorities under the one that is looked for."""
    why = ChainError(f"no authority is named {_name(child.issuer)!r}")
    if below >= DEEPEST:
        raise ChainError(f"more than {DEEPEST} authorities")
    for authority in authorities:
        if authority.subject != child.issuer:
            continue
        try:
            _check_issuer(child, authority, at, below)
            if authority.subject == authority.issuer:
                _check_signed(authority, authority)
                return (_name(authority.subject),)
            others = tuple(other for other in authorities if other is not authority)
            return (_name(authority.subject), *_climb(authority, others, at, below + 1))
        except ChainError as error:
            why = error
    raise why


def _check_issuer(child: Certificate, authority: Certificate, at: datetime, below: int) -> None:
    name = f"the authority {_name(authority.subject)!r}"
    _check_any(authority, at, name)
    constraints = _extension(authority, x509.BasicConstraints)
    if constraints is None or not constraints.ca:
        raise ChainError(f"{name} is not an authority: its basic constraints do not say CA")
    if constraints.path_length is not None and below > constraints.path_length:
        raise ChainError(f"{name} allows {constraints.path_length} authorities below itself, here are {below}")
    usage = _extension(authority, x509.KeyUsage)
    if usage is not None and not usage.key_cert_sign:
        raise ChainError(f"{name} may not sign certificates by its key usage")
    usages = _extension(authority, x509.ExtendedKeyUsage)
    if usages is not None and not {EK_USAGE, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE} & set(usages):
        raise ChainError(f"{name} is for other certificates than EKs' by its extended key usage")
    _check_signed(child, authority)


def _check_signed(child: Certificate, authority: Certificate) -> None:
    if isinstance(child.signature_hash_algorithm, _WEAK):
        raise ChainError(f"{_name(child.subject)!r} is signed with {child.signature_hash_algorithm.name}: too weak")
    try:
        child.verify_directly_issued_by(authority)
    except InvalidSignature:
        raise ChainError(f"the signature of {_name(authority.subject)!r} does not fit") from None


def _extension(certificate: Certificate, kind: type[E]) -> E | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _tpm_of(certificate: Certificate) -> str:
    names = _extension(certificate, x509.SubjectAlternativeName)
    labels = {}
    for name in names.get_values_for_type(x509.DirectoryName) if names is not None else ():
        for attribute in name:
            if label := _TPM.get(attribute.oid.dotted_string):
                labels[label] = _printable(str(attribute.value))
    return ", ".join(f"{label} {labels[label]}" for label in _TPM.values() if label in labels)


def _name(name: x509.Name) -> str:
    return _printable(name.rfc4514_string())


def _printable(text: str) -> str:
    return "".join(c if " " <= c <= "~" else "?" for c in text)[:200]


@contextmanager
def _reading(kind: type[TokenError], summary: str) -> Iterator[None]:
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
