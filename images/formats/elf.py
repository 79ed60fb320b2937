"""Three facts of an ELF file: the libraries it needs, its interpreter, a kernel module's `.modinfo`. Pure.

Only what amd64 and arm64 have: 64 bits, little endian. Unlike `ldd`, this also works for the
other architecture. Layout: elf(5).
"""

import struct
from dataclasses import dataclass

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5


@dataclass(frozen=True, slots=True)
class Linkage:
    """What a program asks of the dynamic linker: names of libraries, and the linker's own path (None: static)."""

    needed: tuple[str, ...]
    interpreter: str | None


def linkage(data: bytes) -> Linkage:
    """What the program or library `data` needs to be started.

    Raises:
        ValueError: not a whole ELF file of 64 bits, little endian.
    """
    try:
        return _linkage(data)
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError(f"a damaged ELF file: {error}") from None


def modinfo(data: bytes) -> dict[str, list[str]]:
    """The `key=value` pairs of a kernel module, in order; a key may be there many times.

    Raises:
        ValueError: not a whole ELF file of 64 bits, little endian.
    """
    try:
        text = _section(data, b".modinfo")
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError(f"a damaged ELF file: {error}") from None
    fields: dict[str, list[str]] = {}
    for pair in text.split(b"\0"):
        key, equals, value = pair.decode(errors="replace").partition("=")
        if equals:
            fields.setdefault(key, []).append(value)
    return fields


def _linkage(data: bytes) -> Linkage:
    _check(data)
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]
    interpreter: str | None = None
    needed: tuple[str, ...] = ()
    for kind, _, at, _, _, length in headers:
        if kind == _PT_INTERP:
            interpreter = data[at : at + length].rstrip(b"\0").decode()
        if kind == _PT_DYNAMIC:
            entries = list(struct.iter_unpack("<QQ", data[at : at + length - length % 16]))
            tags = entries[: next((i for i, (tag, _) in enumerate(entries) if tag == _DT_NULL), len(entries))]
            address = next((value for tag, value in tags if tag == _DT_STRTAB), 0)
            strings = _file_offset(address, headers)
            needed = tuple(_string(data, strings + value) for tag, value in tags if tag == _DT_NEEDED)
    return Linkage(needed, interpreter)


def _file_offset(address: int, headers: list[tuple[int, ...]]) -> int:
    for kind, _, at, virtual, _, length in headers:
        if kind == _PT_LOAD and virtual <= address < virtual + length:
            return at + address - virtual
    raise ValueError("a damaged ELF file: its string table is in no segment")


def _section(data: bytes, section: bytes) -> bytes:
    _check(data)
    offset = struct.unpack_from("<Q", data, 40)[0]
    size, count, names_index = struct.unpack_from("<HHH", data, 58)
    if count == 0:
        return b""
    headers = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]
    names = headers[names_index][4]
    for name, _, _, _, at, length in headers:
        if data[names + name : names + name + len(section) + 1] == section + b"\0":
            return data[at : at + length]
    return b""


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _check(data: bytes) -> None:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not an ELF file of 64 bits, little endian")
