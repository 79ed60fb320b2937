"""Ed25519 signatures in signify's format, so that anybody can check an image by hand with `signify -V`.

A file has two lines: `untrusted comment: …` and base64 of `"Ed" ‖ key number (8 bytes) ‖ payload`; the payload is the
public key (32 bytes) or the signature (64). Source: OpenBSD, usr.bin/signify/signify.c. Signatures are over the plain
message. Key numbers are random in signify; ours are the first 8 bytes of the SHA-256 of the public key.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from images.errors import BadSignatureError, SignatureError, UnknownSignerError

_ALGORITHM = b"Ed"
_COMMENT = b"untrusted comment: "


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The half that verifies. `number` is what signify calls the key by; `raw` has 32 bytes."""

    raw: bytes

    @property
    def number(self) -> bytes:
        """Eight bytes."""
        return hashlib.sha256(self.raw).digest()[:8]

    @property
    def id(self) -> str:
        """The key number, 16 hexadecimal characters: how people and file names call the key."""
        return self.number.hex()

    def to_bytes(self) -> bytes:
        """signify's public key file."""
        return _file(f"netboot public key {self.id}", self.number + self.raw)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The half that signs; it shows nowhere."""

    _private: Ed25519PrivateKey = field(repr=False)

    @property
    def public(self) -> PublicKey:
        """The half that verifies."""
        encoding, form = serialization.Encoding.Raw, serialization.PublicFormat.Raw
        return PublicKey(self._private.public_key().public_bytes(encoding, form))

    def sign(self, message: bytes) -> bytes:
        """signify's signature file over `message`."""
        public = self.public
        return _file(f"signed by netboot key {public.id}", public.number + self._private.sign(message))

    def to_pem(self) -> bytes:
        """PKCS#8, not encrypted: only ever for a file of mode 0600."""
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return self._private.private_bytes(encoding, form, serialization.NoEncryption())

    @classmethod
    def generate(cls) -> "SigningKey":
        """A new key."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, data: bytes) -> "SigningKey":
        """A key from PKCS#8.

        Raises:
            SignatureError: not an Ed25519 private key; the message does not repeat it.
        """
        try:
            key = serialization.load_pem_private_key(data, None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise SignatureError("not a private key in PKCS#8 PEM without a password") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise SignatureError("not an Ed25519 private key")
        return cls(key)


def read_public_key(data: bytes) -> PublicKey:
    """A key from signify's public key file.

    Raises:
        SignatureError: not one, or its number is not the one that the key has here.
    """
    number, raw = _parse(data, 32)
    key = PublicKey(raw)
    if key.number != number:
        raise SignatureError(f"key number {number.hex()} is not this key's, which is {key.id}: made by another tool?")
    return key


def signer_of(signature: bytes) -> str:
    """The id of the key that a signature says it was made with: a claim, not a proof.

    Raises:
        BadSignatureError: not a signature file.
    """
    try:
        return _parse(signature, 64)[0].hex()
    except SignatureError as error:
        raise BadSignatureError(str(error)) from None


def verify(message: bytes, signature: bytes, trusted: Iterable[PublicKey]) -> PublicKey:
    """The trusted key that signed `message`.

    Raises:
        UnknownSignerError: signed by a key that is not among the trusted.
        BadSignatureError: not a signature, or not of these bytes.
    """
    signer = signer_of(signature)
    key = next((key for key in trusted if key.id == signer), None)
    if key is None:
        raise UnknownSignerError(f"signed by key {signer}, which is not trusted here (see `netboot key list`)")
    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(_parse(signature, 64)[1], message)
    except InvalidSignature:
        raise BadSignatureError(f"the signature of key {signer} does not fit: altered after it was signed") from None
    return key


def _file(comment: str, payload: bytes) -> bytes:
    return _COMMENT + comment.encode() + b"\n" + base64.b64encode(_ALGORITHM + payload) + b"\n"


def _parse(data: bytes, size: int) -> tuple[bytes, bytes]:
    lines = data.split(b"\n")
    if len(data) > 2048 or len(lines) < 2 or not lines[0].startswith(_COMMENT):
        raise SignatureError("not a file of signify's: its first line is a comment, its second the key or signature")
    try:
        payload = base64.b64decode(lines[1], validate=True)
    except (binascii.Error, ValueError):
        raise SignatureError("not a file of signify's: its second line is not base64") from None
    if payload[:2] != _ALGORITHM or len(payload) != 2 + 8 + size:
        raise SignatureError("not an Ed25519 key or signature of signify's")
    return payload[2:10], payload[10:]
