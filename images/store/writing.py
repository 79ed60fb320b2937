"""Writing into a store's folder: the writers' lock, and blobs."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from images.artifact.manifest import Artifact
from images.artifact.measure import copy, is_whole
from images.errors import CorruptError
from images.values import files, flock

_FOLDERS = ("blobs", "images", "channels", "refs", "bundles", "tmp")
Progress = Callable[[int], None]
"""Told how many more bytes are done."""


@contextmanager
def locked(root: Path, wait: float) -> Iterator[None]:
    """Hold the writers' lock of a store, waiting up to `wait` seconds; its folders are there, its `tmp/` is empty.

    Raises:
        BusyError: another writer holds it, named by its process. StoreError: the file system refuses, in the block too.
    """
    try:
        if not all((root / name).is_dir() for name in _FOLDERS):
            for name in _FOLDERS:
                (root / name).mkdir(parents=True, exist_ok=True)
            files.sync_folder(root)
        with flock.exclusive(root / "lock", f"the store {root}", wait):
            for left in (root / "tmp").iterdir():
                rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
            yield
    except OSError as error:
        raise files.refused(f"cannot write to the store {root}", error) from error


def put_blob(root: Path, source: Path, artifact: Artifact, name: str, progress: Progress | None) -> None:
    """Copy an artifact, unless it is there, whole; its name in `blobs/` may not be durable yet. Under the lock only.

    Raises:
        CorruptError: the source is something else. StoreError, OSError: it cannot be read, disk full, ….
    """
    if _renew(root, artifact):
        return
    staged = root / "tmp" / "blob"
    with files.replacing(staged, mode=0o444, staging=root / "tmp") as file:
        copied = copy(source, file, progress)
    if copied.sha256 != artifact.sha256:
        staged.unlink()
        raise CorruptError(f"{source} is not the {name} that the manifest lists: build the image again")
    staged.rename(root / "blobs" / artifact.sha256)


def _renew(root: Path, artifact: Artifact) -> bool:
    """Whether the blob is there, whole; then gc's grace counts from now. A damaged one is to be replaced."""
    path = root / "blobs" / artifact.sha256
    if not is_whole(path, artifact):
        return False
    os.utime(path)
    return True
