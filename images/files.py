"""Writing files so that a crash at any instant leaves the old or the new one, never half of one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from images.errors import StoreError


@contextmanager
def replacing(path: Path, *, mode: int = 0o644, staging: Path | None = None) -> Iterator[BinaryIO]:
    """Write to a temporary file of the same file system; when the block ends well it is `path`, whole and durable.

    `staging` is the folder of the temporary file, for where the folder of `path` is read by others.

    Raises:
        StoreError: the file system refuses; nothing was changed.
    """
    temporary = (staging or path.parent) / f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write(path: Path, data: bytes, *, mode: int = 0o644, staging: Path | None = None) -> None:
    """Replace a file by `data`, whole and durable.

    Raises:
        StoreError: the file system refuses; nothing was changed.
    """
    with replacing(path, mode=mode, staging=staging) as file:
        file.write(data)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
