"""What switches say of themselves, heard while the machine waits: LLDP (IEEE 802.1AB, clause 8: TLVs of 7 bits of type
and 9 of length; 1 chassis, 2 port, 4 its description, 5 the system's name), as it comes, every 30 seconds or so."""

import contextlib
import select
import socket
import struct
from collections.abc import Iterator
from time import monotonic

from ..agent.net import plain

_ETHERTYPE = 0x88CC
_GROUP = bytes.fromhex("0180c200000e")
_SOL_PACKET, _ADD_MEMBERSHIP, _MR_MULTICAST = 263, 1, 0
"""linux/if_packet.h, which Python has no names for."""
_CHASSIS, _PORT, _PORT_DESCRIPTION, _SYSTEM = 1, 2, 4, 5
_MAC, _PORT_MAC = 4, 3
"""Subtypes of chassis and port whose value is a MAC address."""


def neighbour(frame: bytes) -> dict[str, str] | None:
    """`system` and `port` of an LLDP frame, Ethernet's header included; None: it says neither. Never raises."""
    said: dict[int, bytes] = {}
    rest = frame[14:]
    while len(rest) >= 2:
        head = int.from_bytes(rest[:2], "big")
        kind, length = head >> 9, head & 0x1FF
        value, rest = rest[2 : 2 + length], rest[2 + length :]
        if kind == 0 or len(value) < length:
            break
        said.setdefault(kind, value)
    system = _text(said.get(_SYSTEM, b"")) or _named(said.get(_CHASSIS, b""), _MAC)
    port = _named(said.get(_PORT, b""), _PORT_MAC) or _text(said.get(_PORT_DESCRIPTION, b""))
    return {"system": system, "port": port} if system or port else None


def _text(value: bytes) -> str:
    return plain(value.decode("ascii", "replace"))[:64].strip()


def _named(value: bytes, mac: int) -> str:
    if len(value) == 7 and value[0] == mac:
        return value[1:].hex(":")
    return _text(value[1:])


class Listener:
    """Frames of LLDP on every card that is up. `heard`: card → what its neighbour says."""

    def __init__(self, sock: socket.socket | None) -> None:
        self._sock = sock
        self.heard: dict[str, dict[str, str]] = {}

    def listen(self, seconds: float) -> None:
        """Wait so long. Not less where somebody speaks all the time: each news is a report."""
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0:
            ready, _, _ = select.select([self._sock] if self._sock is not None else [], [], [], left)
            if ready:
                self._take()

    def _take(self) -> None:
        assert self._sock is not None
        try:
            frame, source = self._sock.recvfrom(2048)
        except OSError:  # its card went down
            return
        if (said := neighbour(frame)) is not None:
            self.heard[plain(str(source[0]))[:32]] = said


@contextlib.contextmanager
def listening() -> Iterator[Listener]:
    """Of this machine; where a raw socket cannot be had, one that never hears anything."""
    with contextlib.ExitStack() as stack:
        sock = None
        with contextlib.suppress(OSError):
            sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERTYPE)))
            for index, _ in socket.if_nameindex():
                with contextlib.suppress(OSError):
                    wanted = struct.pack("iHH8s", index, _MR_MULTICAST, len(_GROUP), _GROUP)
                    sock.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, wanted)
        yield Listener(sock)
