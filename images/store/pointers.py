"""What points to images: channels, and the references of those who still need one. Small JSON files of the store."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from images.errors import CorruptError, NotFoundError
from images.values import files
from images.values.types import NAME, SHA256

MARKS = "unneeded.json"


@dataclass(frozen=True, slots=True)
class ChannelState:
    """Where a channel points: `image` now, `previous` before that; `at` in seconds since 1970."""

    name: str
    image: str
    previous: str | None
    at: int


def is_digest(text: object) -> bool:
    """Whether it is 64 lower-case hexadecimal characters."""
    return isinstance(text, str) and SHA256.fits(text)


def check_name(name: str, what: str) -> None:
    """Names of channels and owners become names of files.

    Raises:
        NotFoundError: it cannot be such a name, so there is none of it.
    """
    if not NAME.fits(name):
        raise NotFoundError(f"{name[:80]!r} cannot be {what} name: lower-case letters, digits, '-' and '.'")


def listed(folder: Path) -> tuple[Path, ...]:
    """The JSON files of a folder of pointers.

    Raises:
        StoreError: it cannot be read.
    """
    return tuple(folder / name for name in files.names(folder) if name.endswith(".json"))


def read_channel(path: Path) -> ChannelState | None:
    """A channel's file, None if there is none.

    Raises:
        CorruptError: with the remedy. StoreError: it cannot be read now.
    """
    match _read(path):
        case _Absent():
            return None
        case {"image": image, "previous": previous, "at": int(at)} if is_digest(image):
            if previous is None or is_digest(previous):
                return ChannelState(path.stem, image, previous, at)
    raise CorruptError(f"{path} is damaged: set the channel again with `netboot channel set {path.stem} IMAGE`")


def read_reference(path: Path) -> frozenset[str]:
    """The digests that an owner needs; none if there is no file.

    Raises:
        CorruptError: with the remedy. StoreError: it cannot be read now.
    """
    match _read(path):
        case _Absent():
            return frozenset()
        case {"images": list(digests)} if all(is_digest(digest) for digest in digests):
            return frozenset(digests)
    raise CorruptError(f"{path} is damaged; the service writes it anew when it starts")


def point(root: Path, name: str, digest: str, now: int) -> ChannelState:
    """Point a channel to an image; the caller holds the writers' lock. `now` in seconds since 1970.

    Raises:
        StoreError.
    """
    path, old = root / "channels" / f"{name}.json", None
    try:
        old = read_channel(path)
        forget_marks(root, {digest, old.image, old.previous} if old else {digest})
    except CorruptError:  # nobody can tell what it pointed to: everything waits the whole grace again
        forget_marks(root)
    if old is not None and old.image == digest:
        return old
    new = ChannelState(name, digest, old.image if old else None, now)
    _write(root, path, {"image": new.image, "previous": new.previous, "at": new.at})
    return new


def refer(root: Path, owner: str, digests: frozenset[str]) -> None:
    """Replace what an owner needs; the caller holds the writers' lock.

    Raises:
        StoreError.
    """
    path = root / "refs" / f"{owner}.json"
    try:
        forget_marks(root, digests | read_reference(path))
    except CorruptError:
        forget_marks(root)
    _write(root, path, {"images": sorted(digests)})


def read_marks(root: Path) -> dict[str, int]:
    """Digest → since when gc has seen it unneeded. A damaged file is an empty one: everything waits again.

    Raises:
        StoreError: it cannot be read now.
    """
    value = _read(root / MARKS)
    if not isinstance(value, dict):
        return {}
    return {digest: since for digest, since in value.items() if is_digest(digest) and isinstance(since, int)}


def write_marks(root: Path, marks: Mapping[str, int]) -> None:
    """Replace them.

    Raises:
        StoreError.
    """
    _write(root, root / MARKS, marks)


def forget_marks(root: Path, digests: Collection[str | None] | None = None) -> None:
    """Start the grace anew for images (None: for all) whose pointers are about to change.

    Without this, an image that was unneeded long ago, and needed since, would go the moment it is let go again.

    Raises:
        StoreError.
    """
    marks = read_marks(root)
    kept = {} if digests is None else {digest: since for digest, since in marks.items() if digest not in digests}
    if kept != marks:
        write_marks(root, kept)


def _write(root: Path, path: Path, value: Mapping[str, Any]) -> None:
    files.write(path, json.dumps(value, sort_keys=True).encode() + b"\n", staging=root / "tmp")


class _Absent:
    """There is no such file: not the same as one that cannot be read, or not understood."""


def _read(path: Path) -> Any:
    try:
        return json.loads(files.bytes_of(path, files.LARGE))
    except FileNotFoundError:
        return _Absent()
    except OSError as error:
        raise files.refused(f"cannot read {path}", error) from error
    except (ValueError, RecursionError):
        return None
