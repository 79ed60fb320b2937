"""The site's TLS authority, made once by `netboot init`, and the certificate of join's listener, which it signs."""

import ipaddress
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=3650)
"""The site bundle carries several authorities, so that a new one can overlap with the old."""
CERTIFICATE_LIFETIME = timedelta(days=825)
"""Long, for nobody but our own agents trusts it, and short enough that renewing it is no forgotten art."""


def new_authority(site: str, now: datetime | None = None) -> tuple[bytes, bytes]:
    """A self-signed certificate and its private key (P-256), both PEM; the key is for a file of mode 0600."""
    now = (now or datetime.now(UTC)).replace(microsecond=0)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"netboot {site} authority")])
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # machines whose clocks are a little slow
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(encoding), private


def new_certificate(
    authority: bytes, key: bytes, names: Iterable[str], now: datetime | None = None
) -> tuple[bytes, bytes]:
    """A server's certificate for `names` (host names and addresses), signed by the first of `authority`; and its key.

    Everything is PEM. Raises:
        ValueError: not a certificate, not its key, or one that may not sign.
    """
    now = (now or datetime.now(UTC)).replace(microsecond=0)
    signer, new_key = x509.load_pem_x509_certificate(authority), ec.generate_private_key(ec.SECP256R1())
    signing = serialization.load_pem_private_key(key, None)
    if not isinstance(signing, ec.EllipticCurvePrivateKey) or signing.public_key() != signer.public_key():
        raise ValueError("the key is not that of the authority: give the one that was made with it")
    listed = [_general_name(name) for name in dict.fromkeys(names)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "netboot join")]))
        .issuer_name(signer.subject)
        .public_key(new_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(signer.not_valid_before_utc)  # a node's clock may be as old as its image
        .not_valid_after(min(now + CERTIFICATE_LIFETIME, signer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(listed), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(new_key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
        .sign(signing, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    private = new_key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(encoding), private


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
