"""The listing of a root: a line of JSON for each path, a folder before what is in it, sorted by names.

Written and read as a stream; two listings are compared in one pass, because both are in the same order.
"""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from images.errors import CorruptError
from images.values.digests import canonical, file_digest

Entry = dict[str, Any]
"""`path`, `kind`, `mode` (four octal digits), `uid`, `gid`; a file's `size` and `sha256`, a link's `target`; extended
`attributes` (hexadecimal, by name) where there are any. A name that is not UTF-8 has lone surrogates (PEP 383)."""

_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}
_LONGEST = 1024 * 1024
"""Bytes of a line: a path has 4096 at most, its attributes 64 KiB each."""


def write(root: Path, out: Path) -> int:
    """List every path of a tree in the file `out`; returns how many there are."""
    count = 0
    with out.open("wb") as file:
        for entry in entries(root):
            file.write(canonical(entry))
            count += 1
    return count


def entries(root: Path) -> Iterator[Entry]:
    """Every path of a tree, the root itself first."""
    yield _entry(root, "/")
    yield from _below(root, "")


def _below(folder: Path, at: str) -> Iterator[Entry]:
    names = {_utf8(name): folder / name for name in os.listdir(folder)}  # noqa: PTH208 - names, not paths
    for name, path in sorted(names.items()):
        entry = _entry(path, f"{at}/{name}")
        yield entry
        if entry["kind"] == "folder":
            yield from _below(path, f"{at}/{name}")


def _utf8(name: str) -> str:
    """A name as it is in UTF-8, whatever the locale of this process makes of its bytes."""
    return os.fsencode(name).decode("utf-8", "surrogateescape")


def _entry(path: Path, name: str) -> Entry:
    status = path.lstat()
    kind = _KINDS[stat.S_IFMT(status.st_mode)]
    entry: Entry = {
        "path": name,
        "kind": kind,
        "mode": f"{stat.S_IMODE(status.st_mode):04o}",
        "uid": status.st_uid,
        "gid": status.st_gid,
    }
    if kind == "file":
        entry |= {"size": status.st_size, "sha256": file_digest(path)}
    elif kind == "link":
        entry["target"] = _utf8(os.readlink(path))  # noqa: PTH115 - as it is written
    attributes = {
        attribute: os.getxattr(path, attribute, follow_symlinks=False).hex()
        for attribute in sorted(os.listxattr(path, follow_symlinks=False))
    }
    return entry | ({"attributes": attributes} if attributes else {})


def order(path: str) -> str:
    """What sorts paths as a listing has them: `/a/b` before `/a.d`."""
    return path.replace("/", "\0")


def read(file: BinaryIO) -> Iterator[Entry]:
    """The entries of a listing.

    Raises:
        CorruptError: a line is no entry, or stands in the wrong place.
    """
    before: str | None = None
    number = 0
    while line := file.readline(_LONGEST):
        number += 1
        entry = _read_entry(line)
        if entry is None or (before is not None and order(entry["path"]) <= before):
            raise CorruptError(f"line {number} of the listing of files is not one: build the image again")
        before = order(entry["path"])
        yield entry


def _read_entry(line: bytes) -> Entry | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not line.endswith(b"\n"):
        return None
    texts = all(isinstance(entry.get(name), str) for name in ("path", "kind", "mode"))
    size = entry.get("size", 0)
    return entry if texts and isinstance(size, int) and not isinstance(size, bool) else None
