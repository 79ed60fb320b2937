"""DHCP's messages in frames of Ethernet, for a packet socket: who has no address has no other (RFC 894, 791, 768)."""

import struct

_EVERYBODY = b"\xff" * 6
_IPV4, _UDP = b"\x08\x00", 17
_CLIENT, _SERVER = 68, 67
_HEAD = struct.Struct("!BBHHHBBH4s4s")


def broadcast(message: bytes, mac: bytes) -> bytes:
    """A message of a client to all servers, as one frame."""
    udp = struct.pack("!HHHH", _CLIENT, _SERVER, 8 + len(message), 0) + message
    fields = (0x45, 0, _HEAD.size + len(udp), 0, 0, 64, _UDP)
    addresses = (bytes(4), b"\xff" * 4)
    checksum = _checksum(_HEAD.pack(*fields, 0, *addresses))
    return _EVERYBODY + mac + _IPV4 + _HEAD.pack(*fields, checksum, *addresses) + udp


def message_in(frame: bytes) -> bytes:
    """The message of a server in a frame; b"" where there is none."""
    if frame[12:14] != _IPV4 or len(frame) < 14 + _HEAD.size + 8:
        return b""
    first, _, _, _, fragment, _, protocol, _, _, _ = _HEAD.unpack_from(frame, 14)
    udp = frame[14 + (first & 0xF) * 4 :]
    if first >> 4 != 4 or first & 0xF < 5 or fragment & 0x3FFF or protocol != _UDP or len(udp) < 8:
        return b""
    source, target, length, _ = struct.unpack_from("!HHHH", udp)
    return udp[8:length] if (source, target) == (_SERVER, _CLIENT) else b""


def _checksum(head: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(head) // 2}H", head))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
