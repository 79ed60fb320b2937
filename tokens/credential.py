"""MakeCredential: a challenge that only the TPM which holds this EK can open, and only for this AK.

Source: TCG "TPM 2.0 Library", part 1, sections 11.4.10 (KDFa, KDFe), 24 (credential protection), B.10.4, C.6.
"""

import hashlib
import hmac
import math
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from tokens import wire
from tokens.errors import MalformedError, UnsupportedKeyError
from tokens.wire import Public, sized

HASHES: dict[str, hashes.HashAlgorithm] = {
    "sha1": hashes.SHA1(),  # noqa: S303 - only ever as a TPM's own name algorithm, never for a signature
    "sha256": hashes.SHA256(),
    "sha384": hashes.SHA384(),
    "sha512": hashes.SHA512(),
}
_CURVES: dict[str, ec.EllipticCurve] = {"secp256r1": ec.SECP256R1(), "secp384r1": ec.SECP384R1()}

# Attributes of a TPM object (part 2, table 31).
FIXED_TPM, FIXED_PARENT, SENSITIVE_ORIGIN, RESTRICTED, DECRYPT, SIGN = 1 << 1, 1 << 4, 1 << 5, 1 << 16, 1 << 17, 1 << 18


@dataclass(frozen=True, slots=True)
class Challenge:
    """`credential_blob` (TPM2B_ID_OBJECT) and `encrypted_secret` (TPM2B_ENCRYPTED_SECRET), for ActivateCredential."""

    credential_blob: bytes
    encrypted_secret: bytes = field(repr=False)


def crypto_key(public: Public) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey:
    """The public key in a TPM's public area.

    Raises:
        MalformedError: not a key at all (a point off its curve, an even modulus).
    """
    try:
        if public.type == wire.ALG_RSA:
            return rsa.RSAPublicNumbers(public.rsa_exponent, public.rsa_modulus).public_key()
        curve = _CURVES[wire.CURVES[public.curve][0]]
        return ec.EllipticCurvePublicNumbers(public.x, public.y, curve).public_key()
    except ValueError as error:
        raise MalformedError(f"not a usable public key: {error}") from None


def spki_sha256(public: Public) -> str:
    """How an EK is pinned: hex SHA-256 of its DER SubjectPublicKeyInfo."""
    der = crypto_key(public).public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def make_credential(
    ek: Public, ak_name: bytes, secret: bytes, random: Callable[[int], bytes] = os.urandom
) -> Challenge:
    """Wrap `secret` (at most a digest of the EK's name algorithm) for the TPM that holds `ek`, bound to `ak_name`.

    Raises:
        UnsupportedKeyError: the EK is not a restricted storage key. MalformedError: it is not a key.
    """
    if not ek.attributes & RESTRICTED or not ek.attributes & DECRYPT or ek.attributes & SIGN or not ek.symmetric_bits:
        raise UnsupportedKeyError("an endorsement key is a restricted storage key, this is not")
    name = wire.hash_name(ek.name_algorithm)
    if name == "sha1":
        raise UnsupportedKeyError("an endorsement key named by SHA-1 is too weak")
    size = hashlib.new(name).digest_size
    if len(secret) > size:
        raise ValueError(f"at most {size} bytes")
    seed, encrypted = _share_seed(ek, name, size, random)
    key = kdfa(name, seed, b"STORAGE", ak_name, b"", ek.symmetric_bits)
    encryptor = Cipher(algorithms.AES(key), CFB(bytes(16))).encryptor()
    identity = encryptor.update(sized(secret)) + encryptor.finalize()
    outer = hmac.digest(kdfa(name, seed, b"INTEGRITY", b"", b"", size * 8), identity + ak_name, name)
    return Challenge(sized(sized(outer) + identity), sized(encrypted))


def _share_seed(ek: Public, name: str, size: int, random: Callable[[int], bytes]) -> tuple[bytes, bytes]:
    key = crypto_key(ek)
    if isinstance(key, rsa.RSAPublicKey):
        if ek.rsa_bits < 2048:
            raise UnsupportedKeyError(f"an RSA endorsement key of {ek.rsa_bits} bits is too short")
        seed = random(size)
        oaep = padding.OAEP(padding.MGF1(HASHES[name]), HASHES[name], b"IDENTITY\0")
        return seed, key.encrypt(seed, oaep)
    length = wire.CURVES[ek.curve][1]
    ephemeral = ec.generate_private_key(key.curve)
    numbers = ephemeral.public_key().public_numbers()
    shared = ephemeral.exchange(ec.ECDH(), key)
    x, y = numbers.x.to_bytes(length, "big"), numbers.y.to_bytes(length, "big")
    seed = kdfe(name, shared, b"IDENTITY", x, ek.x.to_bytes(length, "big"), size * 8)
    return seed, sized(x) + sized(y)


def kdfa(name: str, key: bytes, label: bytes, context_u: bytes, context_v: bytes, bits: int) -> bytes:
    """SP 800-108 counter mode with HMAC, as TPMs use it."""
    rounds = math.ceil(bits / 8 / hashlib.new(name).digest_size)
    tail = label + b"\0" + context_u + context_v + struct.pack(">I", bits)
    blocks = (hmac.digest(key, struct.pack(">I", n) + tail, name) for n in range(1, rounds + 1))
    return b"".join(blocks)[: bits // 8]


def kdfe(name: str, shared: bytes, label: bytes, party_u: bytes, party_v: bytes, bits: int) -> bytes:
    """SP 800-56A concatenation, as TPMs use it."""
    rounds = math.ceil(bits / 8 / hashlib.new(name).digest_size)
    tail = shared + label + b"\0" + party_u + party_v
    blocks = (hashlib.new(name, struct.pack(">I", n) + tail).digest() for n in range(1, rounds + 1))
    return b"".join(blocks)[: bits // 8]
