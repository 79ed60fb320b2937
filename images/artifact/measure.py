"""Files as artifacts: size, digest, digests of chunks; copied, and compared with what they should be."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from images.artifact.manifest import CHUNK_SIZE, Artifact
from images.values import files


def blocks(path: Path) -> Iterator[bytes]:
    """The content of a file in blocks of `CHUNK_SIZE`; only the last may be shorter.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        with files.opened(path) as file:
            yield from iter(lambda: file.read(CHUNK_SIZE), b"")
    except OSError as error:
        raise files.refused(f"cannot read {path}", error) from error


def measure(path: Path, *, chunks: bool = False) -> Artifact:
    """A file as an artifact: its size, its digest, and, for a root image, the digest of each chunk.

    Raises:
        StoreError: it cannot be read.
    """
    whole, digests, size = hashlib.sha256(), list[str](), 0
    for chunk in blocks(path):
        whole.update(chunk)
        size += len(chunk)
        if chunks:
            digests.append(hashlib.sha256(chunk).hexdigest())
    return Artifact(sha256=whole.hexdigest(), size=size, chunks=tuple(digests))


def copy(source: Path, target: BinaryIO, progress: Callable[[int], None] | None = None) -> Artifact:
    """Write a file's content to an open one; what was written. `progress` is told the bytes of each block.

    Raises:
        StoreError: the source cannot be read. OSError: the target cannot be written.
    """
    digest, size = hashlib.sha256(), 0
    for block in blocks(source):
        digest.update(block)
        target.write(block)
        size += len(block)
        if progress:
            progress(len(block))
    return Artifact(sha256=digest.hexdigest(), size=size)


def is_whole(path: Path, artifact: Artifact) -> bool:
    """Whether a file is there with every byte of an artifact.

    Raises:
        StoreError: it is there and cannot be read.
    """
    try:
        if not path.is_file() or path.stat().st_size != artifact.size:
            return False
    except OSError as error:
        raise files.refused(f"cannot read {path}", error) from error
    return measure(path).sha256 == artifact.sha256
