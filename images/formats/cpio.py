"""A cpio archive in the "newc" format, which the kernel unpacks as its first root. Pure; the same bytes every time.

Format: Linux Documentation/driver-api/early-userspace/buffer-format.rst. All that could differ between two builds is
fixed: the order (parents first, then by name), times, inode numbers, owners.
"""

import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LONGEST_PATH = 4095  # PATH_MAX without its NUL, which is what the kernel's unpacker allows
_LARGEST_FILE = 0xFFFFFFFF  # the size field has eight hexadecimal digits
_BLOCK = 512
_TRAILER = "TRAILER!!!"
_HEADER = re.compile(rb"070701([0-9A-Fa-f]{104})")
"""Magic and 13 fields of eight hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in the archive: a relative path, st_mode with its type, contents (a link's target), device numbers."""

    path: str
    mode: int
    data: bytes = b""
    major: int = 0
    minor: int = 0


def directory(path: str, mode: int = 0o755) -> Entry:
    """A directory of root's; `mode`: its permission bits."""
    return Entry(path, stat.S_IFDIR | mode)


def file(path: str, data: bytes, mode: int = 0o644) -> Entry:
    """A regular file of root's with `data`; `mode`: its permission bits."""
    return Entry(path, stat.S_IFREG | mode, data)


def symlink(path: str, target: str) -> Entry:
    """A symbolic link to `target`, as it is written."""
    return Entry(path, stat.S_IFLNK | 0o777, _bytes(target))


def character_device(path: str, major: int, minor: int, mode: int = 0o600) -> Entry:
    """A character device of root's with these numbers; `mode`: its permission bits."""
    return Entry(path, stat.S_IFCHR | mode, b"", major, minor)


def archive(entries: Iterable[Entry], mtime: int = 0) -> bytes:
    """The archive of `entries`; parents that are not among them are made (0755). `mtime`: seconds since 1970, for all.

    Raises:
        ValueError: a path that is absolute, climbs, is too long or is there twice; a file of 4 GiB and more;
            something inside of what is not a directory.
    """
    records: list[bytes] = []
    for number, entry in enumerate(_complete(entries), start=1):
        records.append(_record(entry, number, mtime))
    records.append(_record(Entry(_TRAILER, 0), 0, 0))
    length = sum(map(len, records))
    records.append(bytes(-length % _BLOCK))
    return b"".join(records)


def read(archive: bytes) -> Iterator[Entry]:
    """The entries of one archive, as they are in it; what follows it is not looked at.

    Raises:
        ValueError: it is not whole, or has a file under several names (of which newc gives one the contents).
    """
    at = 0
    while True:
        if (header := _HEADER.match(archive, at)) is None:
            raise ValueError(f"no entry at byte {at}")
        fields = [int(header[1][8 * i : 8 * i + 8], 16) for i in range(13)]
        mode, links, size, major, minor, length = fields[1], fields[4], *(fields[i] for i in (6, 9, 10, 11))
        name = archive[header.end() : header.end() + length - 1].decode("utf-8", "surrogateescape")
        if name == _TRAILER:
            return
        if stat.S_ISREG(mode) and links > 1:
            raise ValueError(f"{name!r} has {links} names")
        start = header.end() + length
        start += -start % 4
        at = start + size
        if at > len(archive):
            raise ValueError(f"{name!r} is not all there")
        yield Entry(name, mode, archive[start:at], major, minor)
        at += -at % 4


def _complete(entries: Iterable[Entry]) -> list[Entry]:
    by_path: dict[tuple[str, ...], Entry] = {}
    for entry in entries:
        key = _parts(entry)
        if key in by_path:
            raise ValueError(f"{entry.path!r} is there twice")
        by_path[key] = entry
    for key in list(by_path):
        for depth in range(1, len(key)):
            parent = by_path.setdefault(key[:depth], directory("/".join(key[:depth])))
            if not stat.S_ISDIR(parent.mode):
                raise ValueError(f"{'/'.join(key)!r} is inside of {parent.path!r}, which is not a directory")
    return [by_path[key] for key in sorted(by_path)]


def _parts(entry: Entry) -> tuple[str, ...]:
    parts = tuple(entry.path.split("/"))
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError(f"{entry.path!r} is not a plain relative path")
    if len(_bytes(entry.path)) > _LONGEST_PATH:
        raise ValueError(f"a path of more than {_LONGEST_PATH} bytes: {entry.path[:60]!r}…")
    if len(entry.data) > _LARGEST_FILE:
        raise ValueError(f"{entry.path!r} has 4 GiB or more, which the format cannot say")
    return parts


def _record(entry: Entry, number: int, mtime: int) -> bytes:
    name = _bytes(entry.path) + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    # ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
    fields = (number, entry.mode, 0, 0, links, mtime, len(entry.data), 0, 0, entry.major, entry.minor, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return header + bytes(-len(header) % 4) + entry.data + bytes(-len(entry.data) % 4)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
