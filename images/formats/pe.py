"""Sections of a PE32+ file (an EFI program): read, and added at its end, as a unified kernel image needs them. Pure.

By Microsoft's "PE Format". Nothing depends on the architecture, unlike objcopy, which on amd64 writes amd64 alone.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from images.errors import RecipeError

_PE32_PLUS = 0x20B
_COFF, _SECTION = struct.Struct("<4sHHIIIHH"), struct.Struct("<8sIIIIIIHHI")
_CODE, _DATA = 0x60000020, 0x40000040
"""Characteristics: code that may be read and executed; initialised data that may be read."""
_PAGE = 4096
"""Where a section begins in memory: firmware that protects memory does so by pages."""
_MOST = 65536
"""The largest alignment that there may be."""


_Row = tuple[bytes, int, int, int, int]
"""A section's name, its size and address in memory, its size and place in the file."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its name (8 bytes at most), and its bytes as they are in memory."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class _Headers:
    optional: int
    table: int
    count: int
    alignment: int
    file_alignment: int
    end: int
    """Where headers end, and the first section's bytes may begin."""


def with_sections(program: bytes, added: Sequence[Section]) -> bytes:
    """`program` with more sections, one after the other in memory; what lay behind its own (symbols, a signature) goes.

    Raises:
        RecipeError: it is no PE32+ file, or its headers have no room.
    """
    headers = _headers(program)
    known = list(_table(program, headers))
    room = headers.table + _SECTION.size * (headers.count + len(added))
    if room > headers.end:
        raise RecipeError(f"the EFI stub's headers have no room for {len(added)} more sections")
    try:
        return _joined(program, headers, known, added)
    except struct.error:
        raise RecipeError("the EFI stub is damaged: its table of sections is not within its headers") from None


def _joined(program: bytes, headers: _Headers, known: list[_Row], added: Sequence[Section]) -> bytes:
    extended = bytearray(program[: max(at + raw for _, _, _, raw, at in known)])
    address = max(start + size for _, size, start, _, _ in known)
    for number, section in enumerate(added, headers.count):
        extended += bytes(-len(extended) % headers.file_alignment)
        address = _up(address, max(_PAGE, headers.alignment))
        raw = _up(len(section.data), headers.file_alignment)
        kind = _CODE if section.name == ".linux" else _DATA
        row = (section.name.encode("ascii"), len(section.data), address, raw, len(extended), 0, 0, 0, 0, kind)
        _SECTION.pack_into(extended, headers.table + number * _SECTION.size, *row)
        extended += section.data.ljust(raw, b"\0")
        address += len(section.data)
    struct.pack_into("<H", extended, headers.optional - 18, headers.count + len(added))
    struct.pack_into("<II", extended, headers.optional - 12, 0, 0)  # symbols
    struct.pack_into("<I", extended, headers.optional + 56, _up(address, headers.alignment))  # SizeOfImage
    struct.pack_into("<I", extended, headers.optional + 64, 0)  # CheckSum: firmware does not look at it
    struct.pack_into("<II", extended, headers.optional + 144, 0, 0)  # the table of signatures
    return bytes(extended)


def _headers(program: bytes) -> _Headers:
    try:
        (start,) = struct.unpack_from("<I", program, 0x3C)
        signature, _, count, _, _, _, size, _ = _COFF.unpack_from(program, start)
        optional = start + _COFF.size
        magic, alignment, file_alignment = (
            *struct.unpack_from("<H", program, optional),
            *struct.unpack_from("<II", program, optional + 32),
        )
        (end,) = struct.unpack_from("<I", program, optional + 60)
    except struct.error:
        raise RecipeError("the EFI stub is no EFI program: it ends within its headers") from None
    if program[:2] != b"MZ" or signature != b"PE\0\0" or magic != _PE32_PLUS or not count:
        raise RecipeError("the EFI stub is no EFI program of 64 bits")
    if not (0 < alignment <= _MOST and 0 < file_alignment <= _MOST):
        raise RecipeError("the EFI stub is damaged: its sections have no alignment that can be")
    return _Headers(optional, optional + size, count, alignment, file_alignment, end)


def _table(program: bytes, headers: _Headers) -> Iterator[_Row]:
    for number in range(headers.count):
        try:
            row = _SECTION.unpack_from(program, headers.table + number * _SECTION.size)
        except struct.error:
            raise RecipeError("the EFI stub is damaged: it ends within its table of sections") from None
        if row[3] + row[4] > len(program):
            raise RecipeError("the EFI stub is damaged: a section ends behind the file's end")
        yield row[0], row[1], row[2], row[3], row[4]


def _up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
