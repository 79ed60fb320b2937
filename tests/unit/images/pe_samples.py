"""A small EFI program, written by hand: headers and sections as systemd's stub has them."""

import struct

_OPTIONAL = 240


def sections(program: bytes) -> list[tuple[str, bytes]]:
    """Name and bytes of each section, as the specification has them."""
    (start,) = struct.unpack_from("<I", program, 0x3C)
    (count,) = struct.unpack_from("<H", program, start + 6)
    rows = [struct.unpack_from("<8sIIII", program, start + 24 + _OPTIONAL + 40 * number) for number in range(count)]
    return [(name.rstrip(b"\0").decode(), program[at : at + min(size, raw)]) for name, size, _, raw, at in rows]


def program(*sections: tuple[str, bytes], room: int = 0x400, behind: bytes = b"") -> bytes:
    """A PE32+ file for amd64; `behind`: bytes after its last section, as symbols lie there."""
    start = 0x80
    header = bytearray(room)
    header[:2] = b"MZ"
    struct.pack_into("<I", header, 0x3C, start)
    symbols = (1, 1) if behind else (0, 0)
    struct.pack_into("<4sHHIIIHH", header, start, b"PE\0\0", 0x8664, len(sections), 0, *symbols, _OPTIONAL, 0x206)
    optional = start + 24
    struct.pack_into("<H", header, optional, 0x20B)
    struct.pack_into("<I", header, optional + 16, 0x1000)  # entry
    struct.pack_into("<II", header, optional + 32, 0x200, 0x200)  # alignments
    struct.pack_into("<I", header, optional + 60, room)
    struct.pack_into("<I", header, optional + 64, 0xABCD)  # checksum
    struct.pack_into("<H", header, optional + 68, 10)  # an EFI application
    struct.pack_into("<I", header, optional + 108, 16)  # directories
    body, address = b"", 0x1000
    for number, (name, data) in enumerate(sections):
        raw = -(-len(data) // 0x200) * 0x200
        row = (name.encode(), len(data), address, raw, room + len(body), 0, 0, 0, 0, 0x60000020)
        struct.pack_into("<8sIIIIIIHHI", header, optional + _OPTIONAL + 40 * number, *row)
        body += data.ljust(raw, b"\0")
        address += -(-max(len(data), 1) // 0x1000) * 0x1000
    struct.pack_into("<I", header, optional + 56, address)
    return bytes(header) + body + behind
