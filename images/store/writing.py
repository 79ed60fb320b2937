"""Writing into a store's folder: the writers' lock, and blobs."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from images.artifact.manifest import Artifact
from images.artifact.measure import copy, is_whole
from images.errors import CorruptError, NotPermittedError, StoreError
from images.store import modes
from images.values import files, flock

Progress = Callable[[int], None]
"""Told how many more bytes are done."""


@contextmanager
def locked(root: Path, wait: float) -> Iterator[None]:
    """Hold the writers' lock of a store, waiting up to `wait` seconds; its folders are there, its `tmp/` is empty.

    Raises:
        BusyError: another writer holds it, named by its process. StoreError: the file system refuses, in the block too.
    """
    try:
        missing = not all((root / name).is_dir() for name in modes.FOLDERS)
        modes.folder(root, root)
        for name in modes.FOLDERS:
            modes.folder(root / name, root)
        if missing:
            files.sync_folder(root)
        with flock.exclusive(modes.lock(root), f"the store {root}", wait):
            for left in (root / "tmp").iterdir():
                rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
            yield
    except PermissionError as error:
        if error.filename and not Path(error.filename).is_relative_to(root):
            raise files.refused(f"cannot read {error.filename}", error) from error
        raise _not_ours(root, error) from error
    except OSError as error:
        raise files.refused(f"cannot write to the store {root}", error) from error


@contextmanager
def looked_at(root: Path) -> Iterator[None]:
    """Around what only reads the store at `root`: no folder is made, no lock taken.

    Raises:
        StoreError: the file system refuses.
    """
    try:
        yield
    except OSError as error:
        raise files.refused(f"cannot read {error.filename or root}", error) from error


def _not_ours(root: Path, error: PermissionError) -> StoreError:
    try:
        owner = modes.name_of(root.stat().st_uid)
    except OSError:
        return files.refused(f"cannot write to the store {root}", error)
    return NotPermittedError(
        f"cannot write to the store {root}: {error.strerror}; it is of the account {owner}: use that one "
        "(docs/store.md, Whose it is)"
    )


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
    try:
        os.utime(path)
    except PermissionError:  # another account's: a copy of ours takes its place
        return False
    return True
