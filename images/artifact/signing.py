"""Ed25519 signatures in signify's format, so that anybody can check an image by hand with `signify -V`.

A file has two lines: `untrusted comment: …` and base64 of `"Ed" ‖ key number (8 bytes) ‖ payload`; the payload is the
public key (32 bytes) or the signature (64). Source: OpenBSD, usr.bin/signify/signify.c. Signatures are over the plain
message. Key numbers are random in signify; ours are the first 8 bytes of the SHA-256 of the public key.

A `.sig` file of ours holds one signature or several, one after the other, each by another key. `signify -V` reads the
first; the initrd (`images/node/initrd/trust.sh`) tries each, as `verify` does. Rules: `docs/manifest.md`.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from images.errors import BadSignatureError, SignatureError, UnknownSignerError

_ALGORITHM = b"Ed"
_COMMENT = b"untrusted comment: "

MOST = 8
"""Signatures in one file; the initrd, too, looks at no more."""
_LARGEST = 2048
Verdict = Literal["good", "bad", "unknown"]
"""Of one signature: it fits, it does not, or its key is not among the trusted (so nothing can be said of it)."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The half that verifies. `number` is what signify calls the key by; `raw` has 32 bytes."""

    raw: bytes

    @property
    def number(self) -> bytes:
        """Eight bytes that stand for the key in keys' and signatures' files, so that a signature says whose it is."""
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
        """The key that verifies what this one signs: 32 bytes, for initrds and other machines."""
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
        """A new key, of the system's random numbers; it is nowhere but in memory."""
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


def signers_of(signatures: bytes) -> tuple[str, ...]:
    """The ids of the keys that a signature file says it was made with, in its order: a claim, not a proof.

    Raises:
        BadSignatureError: not a signature file.
    """
    return tuple(number.hex() for number, _ in _signatures(signatures))


def examine(message: bytes, signatures: bytes, trusted: Iterable[PublicKey]) -> tuple[tuple[str, Verdict], ...]:
    """Each signature's key id and what is to be thought of it, in the file's order.

    Raises:
        BadSignatureError: not a signature file.
    """
    keys = {key.number: key for key in trusted}
    return tuple((number.hex(), _verdict(message, raw, keys.get(number))) for number, raw in _signatures(signatures))


def verify(message: bytes, signatures: bytes, trusted: Iterable[PublicKey]) -> PublicKey:
    """The first trusted key whose signature fits. One is enough, whatever the others are.

    Raises:
        UnknownSignerError: signed by keys that are not among the trusted, and by no other.
        BadSignatureError: not a signature file, or no signature fits and a trusted key's should.
    """
    known = tuple(trusted)
    verdicts = examine(message, signatures, known)
    good = next((signer for signer, verdict in verdicts if verdict == "good"), None)
    if good is not None:
        return next(key for key in known if key.id == good)
    bad = [signer for signer, verdict in verdicts if verdict == "bad"]
    if bad:
        raise BadSignatureError(f"the signature of key {' and '.join(bad)} does not fit: altered after it was signed")
    signers = " and ".join(signer for signer, _ in verdicts)
    raise UnknownSignerError(f"signed by key {signers}, which is not trusted here (see `netboot key list`)")


def sign(message: bytes, keys: Iterable[SigningKey]) -> bytes:
    """A signature file by several keys."""
    return b"".join(key.sign(message) for key in keys)


def add(signatures: bytes, signature: bytes) -> bytes:
    """A signature file with one signature more, at its end; one that the same key made before goes.

    Raises:
        BadSignatureError: either is not a signature file, or there are too many.
    """
    (new, _), *_ = _signatures(signature)
    kept = [part for part in _split(signatures) if _parse(part, 64)[0] != new]
    if len(kept) == MOST:
        raise BadSignatureError(f"has {MOST} signatures already, and no file may have more: build the image again")
    return b"".join((*kept, signature))


def _verdict(message: bytes, signature: bytes, key: PublicKey | None) -> Verdict:
    if key is None:
        return "unknown"
    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, message)
    except InvalidSignature:
        return "bad"
    return "good"


def _signatures(data: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """(key number, signature) of each signature in a file.

    Raises:
        BadSignatureError: not a signature file, or too many of them.
    """
    entries = _split(data)
    if len(entries) > MOST:
        raise BadSignatureError(f"has more than {MOST} signatures")
    try:
        return tuple(_parse(entry, 64) for entry in entries)
    except SignatureError as error:
        raise BadSignatureError(str(error)) from None


def _split(data: bytes) -> list[bytes]:
    """Two whole lines each; what is empty is one part, which is no signature."""
    if len(data) > MOST * _LARGEST:
        raise BadSignatureError(f"has more than {MOST} signatures")
    *lines, rest = data.split(b"\n")
    if rest:
        raise BadSignatureError("not a file of signify's: its last line has no end")
    return [b"\n".join((*lines[at : at + 2], b"")) for at in range(0, len(lines), 2)] or [data]


def _file(comment: str, payload: bytes) -> bytes:
    return _COMMENT + comment.encode() + b"\n" + base64.b64encode(_ALGORITHM + payload) + b"\n"


def _parse(data: bytes, size: int) -> tuple[bytes, bytes]:
    lines = data.split(b"\n")
    if len(data) > _LARGEST or len(lines) < 2 or not lines[0].startswith(_COMMENT):
        raise SignatureError("not a file of signify's: its first line is a comment, its second the key or signature")
    try:
        payload = base64.b64decode(lines[1], validate=True)
    except (binascii.Error, ValueError):
        raise SignatureError("not a file of signify's: its second line is not base64") from None
    if payload[:2] != _ALGORITHM or len(payload) != 2 + 8 + size:
        raise SignatureError("not an Ed25519 key or signature of signify's")
    return payload[2:10], payload[10:]
