"""From an EK certificate to a maker's root. A condition of enrolment only: a chain proves *some* TPM.

The walk is explicit, for general X.509 verifiers refuse EK certificates: an empty subject, a critical subjectAltName of
a directoryName alone, an extended key usage of their own (TCG "EK Credential Profile" 2.5, sections 3.2 and 3.5).
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509 import Certificate
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, ObjectIdentifier

from tokens.ekcert import EkCertificate, extension_of, name_of, reading
from tokens.errors import ChainError

EK_USAGE = ObjectIdentifier("2.23.133.8.1")
"""tcg-kp-EKCertificate."""
DEEPEST = 6
"""Certificates from the TPM's to the root; makers have three or four."""
_PIN_IT = "(TCG EK Credential Profile, 3.2); where the maker's are so, pin the EK by its hash"
_UNDERSTOOD = {
    ExtensionOID.BASIC_CONSTRAINTS,
    ExtensionOID.KEY_USAGE,
    ExtensionOID.EXTENDED_KEY_USAGE,
    ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
    ExtensionOID.CERTIFICATE_POLICIES,
}
_WEAK = (hashes.MD5, hashes.SHA1)


def verify_chain(ek: EkCertificate, authorities: Sequence[Certificate], at: datetime) -> tuple[str, ...]:
    """The names from the EK certificate's issuer to the root. Of `authorities`, those that sign themselves are roots.

    Raises:
        ChainError: why there is no chain. ValueError: a time without a zone.
    """
    if at.tzinfo is None:
        raise ValueError("the time must have a zone")
    with reading(ChainError, "a certificate of the chain cannot be read"):
        _check_leaf(ek.certificate, at.astimezone(UTC))
        return _climb(ek.certificate, tuple(authorities), at.astimezone(UTC), 0)


def _check_leaf(certificate: Certificate, at: datetime) -> None:
    _check_any(certificate, at, "the EK certificate")
    constraints = extension_of(certificate, x509.BasicConstraints)
    if constraints is not None and constraints.ca:
        raise ChainError("the EK certificate is an authority's, not a TPM's")
    usages = extension_of(certificate, x509.ExtendedKeyUsage)
    if usages is None:
        raise ChainError(f"the EK certificate does not say that it is one: it has no extended key usage {_PIN_IT}")
    if EK_USAGE not in list(usages):
        raise ChainError("the EK certificate is for another use: its extended key usage is not an EK's (2.23.133.8.1)")
    _check_key_usage(certificate)


def _check_key_usage(certificate: Certificate) -> None:
    """What an EK does: TPMs decrypt with one of RSA, and agree with one of ECC. It may say more, but not that it signs
    certificates."""
    usage = extension_of(certificate, x509.KeyUsage)
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
    why = ChainError(f"no authority is named {name_of(child.issuer)!r}")
    if below >= DEEPEST:
        raise ChainError(f"more than {DEEPEST} authorities")
    for authority in authorities:
        if authority.subject != child.issuer:
            continue
        try:
            _check_issuer(child, authority, at, below)
            if authority.subject == authority.issuer:
                _check_signed(authority, authority)
                return (name_of(authority.subject),)
            others = tuple(other for other in authorities if other is not authority)
            return (name_of(authority.subject), *_climb(authority, others, at, below + 1))
        except ChainError as error:
            why = error
    raise why


def _check_issuer(child: Certificate, authority: Certificate, at: datetime, below: int) -> None:
    name = f"the authority {name_of(authority.subject)!r}"
    _check_any(authority, at, name)
    constraints = extension_of(authority, x509.BasicConstraints)
    if constraints is None or not constraints.ca:
        raise ChainError(f"{name} is not an authority: its basic constraints do not say CA")
    if constraints.path_length is not None and below > constraints.path_length:
        raise ChainError(f"{name} allows {constraints.path_length} authorities below itself, here are {below}")
    usage = extension_of(authority, x509.KeyUsage)
    if usage is not None and not usage.key_cert_sign:
        raise ChainError(f"{name} may not sign certificates by its key usage")
    usages = extension_of(authority, x509.ExtendedKeyUsage)
    if usages is not None and not {EK_USAGE, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE} & set(usages):
        raise ChainError(f"{name} is for other certificates than EKs' by its extended key usage")
    _check_signed(child, authority)


def _check_signed(child: Certificate, authority: Certificate) -> None:
    if isinstance(child.signature_hash_algorithm, _WEAK):
        raise ChainError(f"{name_of(child.subject)!r} is signed with {child.signature_hash_algorithm.name}: too weak")
    try:
        child.verify_directly_issued_by(authority)
    except InvalidSignature:
        raise ChainError(f"the signature of {name_of(authority.subject)!r} does not fit") from None
