"""Small files that are swapped whole: temp file, fsync, rename, fsync of the folder."""

import json
import os
from pathlib import Path
from typing import Any


def replace(path: Path, data: bytes, *, mode: int = 0o644, durable: bool = True) -> None:
    """Give `path` new contents; a reader, a crash or a power cut sees the old ones or the new ones, never a part.

    `durable=False`: for what a restart writes anew anyway.

    Raises:
        OSError: the folder cannot be written, or the disk is full; the old contents stay.
    """
    staged = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        handle = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        staged.replace(path)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make names that were given or removed in `folder` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_status(path: Path, value: dict[str, Any]) -> None:
    """What a process says of itself, for `/readyz`: JSON, swapped whole, not worth an fsync."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json.dumps(value, sort_keys=True).encode(), durable=False)


def read_status(path: Path) -> dict[str, Any] | None:
    """What `write_status` wrote; None where there is nothing that can be read."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
