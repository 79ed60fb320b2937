"""What node and server share: the exchange's messages and the TPM 2.0 structures in them. Standard library only.

Structures: TCG "TPM 2.0 Library", part 2. All integers are big-endian; a TPM2B is a 16-bit size and that many bytes.
Whatever the bytes, a reader returns a value or raises `MalformedError`.
"""

import hashlib
import struct
from dataclasses import dataclass

from tokens.errors import MalformedError, UnsupportedKeyError
from tokens.errors import TokenError as TokenError  # of all that is raised here: the node imports `wire` alone

RH_ENDORSEMENT, GENERATED, ST_ATTEST_QUOTE = 0x4000000B, 0xFF544347, 0x8018
ALG_RSA, ALG_AES, ALG_NULL, ALG_RSASSA = 0x1, 0x6, 0x10, 0x14
ALG_RSAPSS, ALG_ECDSA, ALG_ECC, ALG_CFB = 0x16, 0x18, 0x23, 0x43
HASHES = {0x4: "sha1", 0xB: "sha256", 0xC: "sha384", 0xD: "sha512"}
CURVES = {0x3: ("secp256r1", 32), 0x4: ("secp384r1", 48)}

QUOTE_TAG = b"netboot.dev/attest/v1"
PROOF_TAG = b"netboot.dev/proof/v1"
"""`proof` is an ECDSA-SHA256 signature of this tag and the sealed state behind it, as one message."""


def quote_nonce(state: bytes, secret: bytes, spki: bytes) -> bytes:
    """The quote's qualifying data: one digest over all that the exchange binds, each part with its length."""
    digest = hashlib.sha256(QUOTE_TAG)
    for part in (state, secret, spki):
        digest.update(struct.pack(">I", len(part)) + part)
    return digest.digest()


class Reader:
    """Reads big-endian structures from bytes, never past their end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        """The next `size` bytes; MalformedError: there are not so many."""
        if size > len(self._data) - self._at:
            raise MalformedError(f"ends after {len(self._data)} bytes, {size} more were announced at {self._at}")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        """The next `size` bytes as an unsigned number."""
        return int.from_bytes(self.take(size), "big")

    def sized(self) -> bytes:
        """The content of a TPM2B: two bytes that say how long it is, then it."""
        return self.take(self.number(2))

    @property
    def done(self) -> bool:
        """Whether everything has been read."""
        return self._at == len(self._data)

    def end(self) -> None:
        """Raise MalformedError where bytes are left."""
        if not self.done:
            raise MalformedError(f"{len(self._data) - self._at} bytes too many")


def sized(data: bytes) -> bytes:
    """`data` as a TPM2B: its length in two bytes, big endian, before it."""
    return struct.pack(">H", len(data)) + data


def hash_name(algorithm: int) -> str:
    """hashlib's name of a TPM hash algorithm.

    Raises:
        UnsupportedKeyError: one that we do not accept.
    """
    if algorithm not in HASHES:
        raise UnsupportedKeyError(f"hash algorithm {algorithm:#06x} is not supported")
    return HASHES[algorithm]


@dataclass(frozen=True, slots=True)
class Public:
    """A TPMT_PUBLIC of an RSA or ECC key. `raw` is its marshalled form without the size."""

    raw: bytes
    type: int
    name_algorithm: int
    attributes: int
    policy: bytes
    symmetric_bits: int
    """AES-CFB key bits of a storage key; 0 for keys that do not wrap others."""
    scheme: int
    scheme_hash: int
    rsa_modulus: int
    rsa_bits: int
    rsa_exponent: int
    curve: int
    x: int
    y: int

    @property
    def name(self) -> bytes:
        """The object's Name: algorithm and digest of its public area."""
        return struct.pack(">H", self.name_algorithm) + hashlib.new(hash_name(self.name_algorithm), self.raw).digest()

    def qualified_name(self, parent: bytes) -> bytes:
        """The qualified Name under a parent's qualified Name, or a hierarchy's handle (4 bytes)."""
        digest = hashlib.new(hash_name(self.name_algorithm), parent + self.name).digest()
        return struct.pack(">H", self.name_algorithm) + digest


def read_public(data: bytes) -> Public:
    """A TPM2B_PUBLIC.

    Raises:
        MalformedError: not one. UnsupportedKeyError: neither RSA nor ECC, or an algorithm that we do not accept.
    """
    outer = Reader(data)
    raw = outer.sized()
    outer.end()
    reader = Reader(raw)
    kind, name_algorithm, attributes, policy = reader.number(2), reader.number(2), reader.number(4), reader.sized()
    hash_name(name_algorithm)
    if kind not in (ALG_RSA, ALG_ECC):
        raise UnsupportedKeyError(f"key type {kind:#06x} is neither RSA nor ECC")
    symmetric = _read_symmetric(reader)
    scheme, scheme_hash = _read_scheme(reader)
    bits = exponent = modulus = curve = x = y = 0
    if kind == ALG_RSA:
        bits, exponent = reader.number(2), reader.number(4) or 65537
        modulus = int.from_bytes(reader.sized(), "big")
        if modulus.bit_length() != bits:
            raise MalformedError(f"an RSA key of {bits} bits with a modulus of {modulus.bit_length()}")
    else:
        curve = reader.number(2)
        if curve not in CURVES:
            raise UnsupportedKeyError(f"curve {curve:#06x} is neither P-256 nor P-384")
        _read_scheme(reader)
        x, y = (int.from_bytes(_coordinate(reader, CURVES[curve][1]), "big") for _ in range(2))
    reader.end()
    return Public(
        *(raw, kind, name_algorithm, attributes, policy, symmetric, scheme, scheme_hash),
        *(modulus, bits, exponent, curve, x, y),
    )


def _coordinate(reader: Reader, size: int) -> bytes:
    value = reader.sized()
    if len(value) > size:
        raise MalformedError(f"a coordinate of {len(value)} bytes on a curve of {size}")
    return value


def _read_symmetric(reader: Reader) -> int:
    algorithm = reader.number(2)
    if algorithm == ALG_NULL:
        return 0
    bits, mode = reader.number(2), reader.number(2)
    if algorithm != ALG_AES or mode != ALG_CFB or bits not in (128, 192, 256):
        raise UnsupportedKeyError("a storage key must wrap with AES-CFB")
    return bits


def _read_scheme(reader: Reader) -> tuple[int, int]:
    scheme = reader.number(2)
    return (scheme, 0) if scheme == ALG_NULL else (scheme, reader.number(2))


@dataclass(frozen=True, slots=True)
class Selection:
    """The PCRs of one bank: hash algorithm and indices in ascending order."""

    algorithm: int
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quote:
    """A TPMS_ATTEST of a quote."""

    raw: bytes
    qualified_signer: bytes
    nonce: bytes
    clock: int
    """Milliseconds that the TPM has been powered, by its own count."""
    reset_count: int
    restart_count: int
    safe: bool
    selections: tuple[Selection, ...]
    pcr_digest: bytes


def read_quote(data: bytes) -> Quote:
    """A TPMS_ATTEST (without a size before it).

    Raises:
        MalformedError: not one, not made inside a TPM, or not a quote.
    """
    reader = Reader(data)
    if reader.number(4) != GENERATED:
        raise MalformedError("not made inside a TPM (wrong magic)")
    if reader.number(2) != ST_ATTEST_QUOTE:
        raise MalformedError("an attestation, but not a quote")
    signer, nonce = reader.sized(), reader.sized()
    clock, reset, restart, safe = reader.number(8), reader.number(4), reader.number(4), reader.number(1)
    _, count = reader.take(8), reader.number(4)  # the firmware's version is of no use here
    if count > 16:
        raise MalformedError(f"{count} PCR banks")
    selections = tuple(_read_selection(reader) for _ in range(count))
    digest = reader.sized()
    reader.end()
    return Quote(data, signer, nonce, clock, reset, restart, bool(safe), selections, digest)


def _read_selection(reader: Reader) -> Selection:
    algorithm, size = reader.number(2), reader.number(1)
    if size > 4:
        raise MalformedError(f"a PCR selection of {size} bytes")
    bits = int.from_bytes(reader.take(size), "little")
    return Selection(algorithm, tuple(index for index in range(size * 8) if bits >> index & 1))


@dataclass(frozen=True, slots=True)
class TpmSignature:
    """A TPMT_SIGNATURE: for RSA `r` is the signature and `s` is 0; for ECDSA both numbers."""

    algorithm: int
    hash: int
    signature: bytes
    r: int
    s: int


def read_signature(data: bytes) -> TpmSignature:
    """A TPMT_SIGNATURE.

    Raises:
        MalformedError: not one. UnsupportedKeyError: a scheme that we do not accept.
    """
    reader = Reader(data)
    algorithm, hash_algorithm = reader.number(2), reader.number(2)
    if algorithm in (ALG_RSASSA, ALG_RSAPSS):
        value = TpmSignature(algorithm, hash_algorithm, reader.sized(), 0, 0)
    elif algorithm == ALG_ECDSA:
        r, s = (int.from_bytes(_coordinate(reader, 48), "big") for _ in range(2))
        value = TpmSignature(algorithm, hash_algorithm, b"", r, s)
    else:
        raise UnsupportedKeyError(f"signature scheme {algorithm:#06x} is not supported")
    reader.end()
    return value
