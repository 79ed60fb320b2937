"""DHCPDISCOVER as firmware sends it, and offers as values (RFC 2131, 2132, 3004, 3396, 4578); no more of DHCP.

Everybody on the wire may send an offer: `parse` takes any bytes, and what it returns is printable.
"""

import struct
from ipaddress import IPv4Address
from typing import NamedTuple

from netboot.dhcp.plan import FIRMWARE, Firmware

LONGEST = 1500
"""Bytes of a message; one that is longer is in several frames, and no offer of ours."""
_MAGIC = b"\x63\x82\x53\x63"
_FIXED = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s4s")
_REQUEST, _REPLY, _ETHERNET, _BROADCAST = 1, 2, 1, 0x8000
_DISCOVER, _OFFER = 1, 2
_WANTED = bytes((1, 3, 6, 12, 43, 54, 60, 66, 67))
"""Parameters that firmware asks for (option 55), as far as they matter here."""
_IPXE = b"\xb1\x05\x01\x1a\xf4\x10\x00\xeb\x03\x01\x00\x00"
"""A part of what iPXE says of itself in option 175 (src/include/ipxe/dhcp.h): its card, its version."""


class NotAnOfferError(ValueError):
    """It is something else: the answer to another question, or no DHCP."""


class Client(NamedTuple):
    """Who asks: a kind of firmware, or iPXE on it. `architecture`: option 93."""

    words: str
    firmware: Firmware
    architecture: int
    ipxe: bool = False

    @property
    def http(self) -> bool:
        """Whether it takes offers for HTTPClient alone."""
        return self.firmware.http and not self.ipxe


CLIENTS = (
    *(Client(one.words, one, one.architectures[0]) for one in FIRMWARE),
    Client("iPXE on BIOS", FIRMWARE[0], 0, ipxe=True),
    Client("iPXE on UEFI x64", FIRMWARE[1], 7, ipxe=True),
)


class Offer(NamedTuple):
    """What a server says. `address`: "" where it gives none, as a proxy; `file`: a path or a URL, "" where it names
    none; `tftp`: where a path is, the field siaddr, else option 66; `http`: it repeats HTTPClient; `menu`: PXE boot
    items of option 43, of which BIOS chooses one by asking again."""

    server: str
    address: str
    tftp: str
    file: str
    http: bool
    menu: bool


def discover(client: Client, mac: bytes, transaction: int) -> bytes:
    """The message of a client with this address; `transaction`: a number of 32 bits by which its offers are known."""
    vendor = f"{'HTTPClient' if client.http else 'PXEClient'}:Arch:{client.architecture:05d}:UNDI:003016"
    options = _option(53, bytes((_DISCOVER,))) + _option(55, _WANTED) + _option(57, struct.pack("!H", LONGEST))
    options += _option(60, vendor.encode()) + _option(93, struct.pack("!H", client.architecture))
    options += _option(94, b"\x01\x03\x10") + _option(97, b"\0" + bytes(10) + mac)
    if client.ipxe:
        options += _option(77, b"iPXE") + _option(175, _IPXE)
    nothing = bytes(4)
    head = (_REQUEST, _ETHERNET, 6, 0, transaction, 0, _BROADCAST, nothing, nothing, nothing, nothing)
    return _FIXED.pack(*head, mac, b"", b"", _MAGIC) + options + b"\xff"


def parse(message: bytes, transaction: int) -> Offer:
    """The offer in a message.

    Raises:
        NotAnOfferError: it is none, or none to this transaction.
    """
    if not _FIXED.size <= len(message) <= LONGEST:
        raise NotAnOfferError("it is too short or too long")
    fields = _FIXED.unpack_from(message)
    operation, number, yours, server, name, file, magic = (fields[at] for at in (0, 4, 8, 9, 12, 13, 14))
    if operation != _REPLY or number != transaction or magic != _MAGIC:
        raise NotAnOfferError("it is no reply to this question")
    options = _options(message[_FIXED.size :])
    where = options.get(52, b"\0")
    for bit, field in ((1, file), (2, name)):  # option 52: these fields hold options, too
        if where[:1] and where[0] & bit:
            options = {**_options(field), **options}
    if options.get(53) != bytes((_OFFER,)):
        raise NotAnOfferError("it is no offer")
    overloaded = where[0] & 1 if where[:1] else 0
    named = _text(options.get(67) or (b"" if overloaded else file))
    ours = options.get(54, b"")
    return Offer(
        server=_address(ours if len(ours) == 4 else server),
        address=_address(yours),
        tftp=_address(server) or _text(options.get(66, b"")),
        file=named,
        http=options.get(60, b"").startswith(b"HTTPClient"),
        menu=not named and bool(options.get(43)),
    )


def _option(code: int, value: bytes) -> bytes:
    return bytes((code, len(value))) + value


def _options(field: bytes) -> dict[int, bytes]:
    """Those of a field, whole ones only; of one that comes several times the parts together (RFC 3396)."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(field) and field[at] != 0xFF:
        if field[at] == 0:
            at += 1
            continue
        length = field[at + 1] if at + 1 < len(field) else len(field)
        value = field[at + 2 : at + 2 + length]
        if len(value) < length:
            break
        found[field[at]] = found.get(field[at], b"") + value
        at += 2 + length
    return found


def _text(field: bytes) -> str:
    """Up to its first NUL; what is no printable ASCII is a question mark."""
    return "".join(chr(one) if 0x20 <= one < 0x7F else "?" for one in field.partition(b"\0")[0])


def _address(field: bytes) -> str:
    return str(IPv4Address(field)) if any(field) else ""
