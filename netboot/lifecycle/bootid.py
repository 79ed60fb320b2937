"""Boot ids: any worker can tell, without a look-up, whether a boot belongs to a machine.

UUIDv8-shaped, 16 bytes: 48-bit milliseconds since 1970, 4 random bytes that also hold version and variant, and
6 bytes of HMAC-SHA256(key, first 10 bytes ‖ machine name). An id opens nothing; it only cannot be made up.
"""

import hashlib
import hmac
import os
import re
from collections.abc import Iterator

from netboot.machines.match import Index
from netboot.machines.values import Machine

_SHAPE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_HEAD = 10
_TAIL = 6


class Minter:
    """`mint` for one key, several times as fast: the key's part of the HMAC (RFC 2104) is worked out once."""

    __slots__ = ("_inner", "_outer", "key")

    def __init__(self, key: bytes) -> None:
        self.key = key
        block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def mint(self, machine: str, now_ms: int, random4: bytes) -> str:
        """A new boot id, as `mint` makes it."""
        head = _head(now_ms, random4)
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(head + machine.encode())
        outer.update(inner.digest())
        return _text(head + outer.digest()[:_TAIL])


def random4s() -> Iterator[bytes]:
    """Four bytes each that nobody can foresee, from a stock: asking the kernel gives up the interpreter's lock, and for
    four bytes that is dear."""
    while True:
        stock = os.urandom(4096)
        yield from (stock[at : at + 4] for at in range(0, len(stock), 4))


def mint(key: bytes, machine: str, now_ms: int, random4: bytes) -> str:
    """A new boot id for `machine`; `random4` is four bytes nobody can foresee."""
    head = _head(now_ms, random4)
    return _text(head + _tail(key, head, machine))


def belongs(key: bytes, boot_id: str, machine: str) -> bool:
    """Whether `boot_id` was minted with `key` for `machine`, in constant time; False for anything malformed."""
    if not _SHAPE.fullmatch(boot_id):
        return False
    raw = bytes.fromhex(boot_id.replace("-", ""))
    return hmac.compare_digest(raw[_HEAD:], _tail(key, raw[:_HEAD], machine))


def machine_of_boot(index: Index, key: bytes, boot_id: str, name: str | None, mac: str | None) -> Machine | None:
    """The machine that `boot_id` is of; None: neither `name` nor `mac` leads to it.

    Both are what whoever asks says of itself, and only tell where to look: `name` is what the boot's own script called
    it (a machine that is declared by UUID or serial alone has nothing else), `mac` the card that it booted from. What
    proves the machine is the boot id.
    """
    by_name = index.named(name) if name else None
    by_mac = index.by_mac(mac) if mac else None
    return next(
        (machine for machine in (by_name, by_mac) if machine is not None and belongs(key, boot_id, machine.name)), None
    )


def minted_ms(boot_id: str) -> int:
    """When a (well-formed) boot id was minted, milliseconds since 1970."""
    return int(boot_id[:8] + boot_id[9:13], 16)


def _head(now_ms: int, random4: bytes) -> bytes:
    version_variant = bytes((0x80 | random4[0] & 0x0F, random4[1], 0x80 | random4[2] & 0x3F, random4[3]))
    return now_ms.to_bytes(6, "big") + version_variant


def _text(raw: bytes) -> str:
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _tail(key: bytes, head: bytes, machine: str) -> bytes:
    return hmac.digest(key, head + machine.encode(), "sha256")[:_TAIL]
