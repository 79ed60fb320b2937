"""Small ELF files, written by hand: enough for the readers of `images.formats.elf`."""

import struct


def module(**pairs: str) -> bytes:
    """A kernel module that has only `.modinfo`."""
    return module_of(b"".join(f"{key}={value}".encode() + b"\0" for key, value in pairs.items()))


def module_of(modinfo: bytes) -> bytes:
    """A kernel module whose `.modinfo` has these bytes."""
    names = b"\0.modinfo\0.shstrtab\0"
    at_modinfo, at_names = 64, 64 + len(modinfo)
    at_headers = at_names + len(names)
    header = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, at_headers, 0, 64, 0, 0, 64, 3, 2)
    )
    sections = bytes(64) + b"".join(
        struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, at, size, 0, 0, 1, 0)
        for name, at, size in ((1, at_modinfo, len(modinfo)), (10, at_names, len(names)))
    )
    return header + modinfo + names + sections


def program(needed: tuple[str, ...] = (), interpreter: str | None = None) -> bytes:
    """A program (or library) that needs libraries; without any and without an interpreter it is static."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    interp = (interpreter or "").encode() + b"\0"
    count = 1 + (interpreter is not None) + bool(needed)
    at_strings = 64 + 56 * count
    at_interp = at_strings + len(strings)
    at_dynamic = at_interp + len(interp)
    offsets, at = [], 1
    for name in needed:
        offsets.append(at)
        at += len(name) + 1
    base = 0x400000
    tags = [*((1, offset) for offset in offsets), (5, base + at_strings), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    size = at_dynamic + len(dynamic)
    headers = [struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096)]
    if interpreter is not None:
        headers.append(struct.pack("<IIQQQQQQ", 3, 4, at_interp, 0, 0, len(interp), len(interp), 1))
    if needed:
        headers.append(struct.pack("<IIQQQQQQ", 2, 6, at_dynamic, 0, 0, len(dynamic), len(dynamic), 8))
    header = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, count, 64, 0, 0)
    )
    return header + b"".join(headers) + strings + interp + dynamic
