"""This machine's key for this boot: P-256, in RAM, readable by root; a restarted agent carries on with it."""

from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from . import files


def keep(path: Path) -> ec.EllipticCurvePrivateKey:
    """The key in `path`, made where there is none (or none that can be used)."""
    held = files.small(path, 4096)
    if held is not None:
        try:
            key = serialization.load_pem_private_key(held, password=None)
        except (ValueError, TypeError):
            key = None
        if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
            return key
    fresh = ec.generate_private_key(ec.SECP256R1())
    files.put(path, pem(fresh), 0o600)
    return fresh


def pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The private key, as the kubelet reads it."""
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The public key: DER SubjectPublicKeyInfo."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.DER, form)


def sign(key: ec.EllipticCurvePrivateKey, message: bytes) -> bytes:
    """ECDSA over SHA-256 of `message`, DER."""
    return key.sign(message, ec.ECDSA(hashes.SHA256()))
