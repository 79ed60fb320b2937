"""Writing blobs into a store's folder; the caller holds the writers' lock."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from images.artifact.manifest import Artifact
from images.artifact.measure import blocks, measure
from images.errors import CorruptError
from images.values import files

Progress = Callable[[int], None]
"""Told how many more bytes are done."""


def take(root: Path, source: Path | BinaryIO, progress: Progress | None) -> Artifact:
    """Copy a source whose digest is not known before.

    Raises:
        StoreError, OSError: it cannot be read, disk full, …; nothing is left behind.
    """
    staged = root / "tmp" / "blob"
    artifact = _copy(root, staged, source, progress)
    if _renewed(root, artifact):
        staged.unlink()
    else:
        staged.rename(root / "blobs" / artifact.sha256)
    files.sync_folder(root / "blobs")
    return artifact


def put(root: Path, source: Path, artifact: Artifact, name: str, progress: Progress | None) -> None:
    """Copy an artifact, unless it is there, whole. Its name in `blobs/` may not be durable yet.

    Raises:
        CorruptError: the source is something else. StoreError, OSError: it cannot be read, disk full, ….
    """
    if _renewed(root, artifact):
        return
    staged = root / "tmp" / "blob"
    if _copy(root, staged, source, progress).sha256 != artifact.sha256:
        staged.unlink()
        raise CorruptError(f"{source} is not the {name} that the manifest lists: build the image again")
    staged.rename(root / "blobs" / artifact.sha256)


def _copy(root: Path, target: Path, source: Path | BinaryIO, progress: Progress | None) -> Artifact:
    digest, size = hashlib.sha256(), 0
    with files.replacing(target, mode=0o444, staging=root / "tmp") as writer:
        for block in blocks(source):
            digest.update(block)
            writer.write(block)
            size += len(block)
            if progress:
                progress(len(block))
    return Artifact(sha256=digest.hexdigest(), size=size)


def _renewed(root: Path, artifact: Artifact) -> bool:
    """Whether the blob is there, whole; then gc's grace counts from now. A damaged one is to be replaced."""
    path = root / "blobs" / artifact.sha256
    if not path.is_file() or measure(path).sha256 != artifact.sha256:
        return False
    os.utime(path)
    return True
