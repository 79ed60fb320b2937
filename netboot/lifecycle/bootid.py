"""Boot ids: any worker of any host with the key can tell, without a look-up, whether a boot belongs to a machine, and
which image its script named.

UUIDv8-shaped, 16 bytes: 48-bit milliseconds since 1970; 4 bytes that hold version, variant, the first 20 bits of the
image's digest and a number of 6 bits; and 6 bytes of HMAC-SHA256(key, first 10 bytes ‖ machine name). As text,
`mmmmmmmm-mmmm-8iii-vnii-tttttttttttt`, the digits `i` are the first five of the digest. An id opens nothing; it only
cannot be made up. Ids that netboot minted before they named images have chance in place of `i` and of the number.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator
from itertools import count

from netboot.machines.match import Index
from netboot.machines.values import Machine

_SHAPE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_HEAD = 10
_TAIL = 6
NO_IMAGE = "0" * 64
"""Of a boot that no script began."""
AHEAD_MS = 60_000
"""More than clocks of hosts that share a key of boot ids differ."""


class Minter:
    """`mint` for one key, several times as fast: the key's part of the HMAC (RFC 2104) is worked out once."""

    __slots__ = ("_inner", "_outer", "key")

    def __init__(self, key: bytes) -> None:
        self.key = key
        block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def mint(self, machine: str, image: str, now_ms: int, number: int) -> str:
        """A new boot id, as `mint` makes it."""
        head = _head(image, now_ms, number)
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(head + machine.encode())
        outer.update(inner.digest())
        return _text(head + outer.digest()[:_TAIL])


def numbers() -> Iterator[int]:
    """One for each boot id that a process mints: from a start that workers seldom share, each once in 64."""
    return count(secrets.randbelow(64))


def mint(key: bytes, machine: str, image: str, now_ms: int, number: int) -> str:
    """A new boot id for `machine`, whose script names the image of digest `image`. `number`: its last six bits tell
    boots of one machine and millisecond apart."""
    head = _head(image, now_ms, number)
    return _text(head + _tail(key, head, machine))


def is_of(boot_id: str, image: str, on_record: str | None) -> bool:
    """Whether the script of a boot, whose id `belongs`, named `image`. `on_record`: which it is known to have named;
    None: that is not known here (this host forgot it, or another served it), and the first digits in the id say it,
    which other images share with a chance of one in 2^20. All are digests."""
    return image == on_record if on_record is not None else boot_id[15:18] + boot_id[21:23] == image[:5]


def is_shaped(text: str) -> bool:
    """Whether it looks like a boot id, anybody's."""
    return _SHAPE.fullmatch(text) is not None


def belongs(key: bytes, boot_id: str, machine: str) -> bool:
    """Whether `boot_id` was minted with `key` for `machine`, in constant time; False for anything malformed."""
    if not is_shaped(boot_id):
        return False
    raw = bytes.fromhex(boot_id.replace("-", ""))
    return hmac.compare_digest(raw[_HEAD:], _tail(key, raw[:_HEAD], machine))


def machine_of_boot(index: Index, key: bytes, boot_id: str, name: str | None, mac: str | None) -> Machine | None:
    """The machine that `boot_id` is of; None: neither `name` nor `mac` leads to it.

    Both are what whoever asks says of itself, and only tell where to look: `name` is what the boot's own script called
    it (a machine that is declared by UUID or serial alone has nothing else), `mac` the card that it booted from. What
    proves the machine is the boot id, which stays what it is where the machine is renamed while it runs.
    """
    by_name = index.named(name) or index.formerly(name) if name else None
    by_mac = index.by_mac(mac) if mac else None
    for machine in (by_name, by_mac):
        if machine is not None and any(belongs(key, boot_id, one) for one in (machine.name, *machine.former_names)):
            return machine
    return None


def minted_ms(boot_id: str) -> int:
    """When a (well-formed) boot id was minted, milliseconds since 1970."""
    return int(boot_id[:8] + boot_id[9:13], 16)


def _head(image: str, now_ms: int, number: int) -> bytes:
    named = int(image[:5], 16)
    rest = bytes((0x80 | named >> 16, named >> 8 & 0xFF, 0x80 | number & 0x3F, named & 0xFF))
    return now_ms.to_bytes(6, "big") + rest


def _text(raw: bytes) -> str:
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _tail(key: bytes, head: bytes, machine: str) -> bytes:
    return hmac.digest(key, head + machine.encode(), "sha256")[:_TAIL]
