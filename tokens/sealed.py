"""Sealed state: what a server hands to a client between two calls, so that any replica can take the second one.

AES-256-GCM under a keyset of several keys, so that they can be rotated while states are under way. The form is
`key id (4 bytes) ‖ nonce (12) ‖ ciphertext`; the plaintext is `expiry (8 bytes, ms since 1970) ‖ issued (8) ‖ body`.
"""

import hashlib
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tokens.errors import ExpiredStateError, ForgedStateError, FutureStateError, UnknownKeyError

SKEW_MS = 30_000
"""How far the clocks of two replicas may be apart."""


@dataclass(frozen=True, slots=True)
class SealingKey:
    """One key of a keyset: 32 bytes, named by the digest of itself."""

    material: bytes = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse a key of another size: nothing else notices it early."""
        if len(self.material) != 32:
            raise ValueError("a sealing key has 32 bytes")

    @property
    def id(self) -> bytes:
        """Four bytes that name the key and tell nothing of it."""
        return hashlib.sha256(b"netboot.dev/sealing-key-id\0" + self.material).digest()[:4]


@dataclass(frozen=True, slots=True)
class Keyset:
    """Keys in order: the first seals, all open. A retired key stays for at least the longest lifetime of a state."""

    keys: Sequence[SealingKey]

    def __post_init__(self) -> None:
        """A keyset without keys could only fail later."""
        if not self.keys:
            raise ValueError("a keyset needs at least one key")

    def seal(
        self,
        body: bytes,
        purpose: bytes,
        now_ms: int,
        lifetime_ms: int,
        random: Callable[[int], bytes] = os.urandom,
    ) -> bytes:
        """Seal `body`; only `open` with the same `purpose` (message type, site, cluster) gives it back."""
        key, nonce = self.keys[0], random(12)
        plain = struct.pack(">QQ", now_ms + lifetime_ms, now_ms) + body
        return key.id + nonce + AESGCM(key.material).encrypt(nonce, plain, key.id + purpose)

    def open(self, sealed: bytes, purpose: bytes, now_ms: int) -> bytes:
        """The body that was sealed.

        Raises:
            UnknownKeyError, ForgedStateError, ExpiredStateError, FutureStateError.
        """
        if len(sealed) < 4 + 12 + 16 + 16:
            raise ForgedStateError("too short to be a sealed state")
        key = next((key for key in self.keys if key.id == sealed[:4]), None)
        if key is None:
            raise UnknownKeyError("sealed under a key that is not in use here (any more)")
        try:
            plain = AESGCM(key.material).decrypt(sealed[4:16], sealed[16:], key.id + purpose)
        except InvalidTag:
            raise ForgedStateError("the seal does not fit: altered, or made for another purpose") from None
        expiry, issued = struct.unpack(">QQ", plain[:16])
        if issued > now_ms + SKEW_MS:
            ahead = (issued - now_ms) // 1000
            raise FutureStateError(f"sealed by a clock that is {ahead} s ahead of this one: check NTP on both replicas")
        if now_ms > expiry + SKEW_MS:
            raise ExpiredStateError(f"expired {(now_ms - expiry) // 1000} s ago by this clock: start again with hello")
        return plain[16:]
