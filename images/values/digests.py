"""Digests of values, files and folders, and the one form in which documents are written to be signed."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from images.values import files

PLACE: Mapping[str, Any] = {"place": True}
"""Metadata of a dataclass's field that only says where a thing is; what it is, other fields say. It is not hashed."""


def canonical(value: Any) -> bytes:
    """The one form in which signed documents are written: JSON, keys sorted, no blanks, ASCII, a line's end."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode() + b"\n"


def digest(value: Any) -> str:
    """SHA-256 of a plain value's canonical JSON, 64 hexadecimal characters."""
    return hashlib.sha256(canonical(value)).hexdigest()


def plain(value: Any) -> Any:
    """A value as JSON that two equal values share, for hashing.

    Raises:
        TypeError: the value has no content to be hashed (a path, say: the same path may hold other bytes tomorrow).
    """
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, bytes):
        return {"sha256": hashlib.sha256(value).hexdigest()}
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        decides = (field.name for field in dataclasses.fields(value) if field.metadata != PLACE)
        return {name: plain(getattr(value, name)) for name in decides}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    raise TypeError(f"a {type(value).__name__} cannot be an input of a step: it has no content that can be hashed")


def file_digest(path: Path) -> str:
    """SHA-256 of a file that may be large, 64 hexadecimal characters."""
    with files.opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_digest(path: Path) -> str:
    """Hash of a folder's files: names, contents, executable bits and links, not times or owners; or of one file."""
    if path.is_file():
        return file_digest(path)
    entries: list[list[Any]] = []
    for item in sorted(path.rglob("*")):
        if "__pycache__" in item.parts:
            continue
        name = item.relative_to(path).as_posix()
        if item.is_symlink():
            entries.append([name, "link", str(item.readlink())])
        elif item.is_file():
            entries.append([name, bool(item.stat().st_mode & 0o111), file_digest(item)])
    return digest(entries)
