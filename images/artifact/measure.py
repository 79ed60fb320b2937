"""Files as artifacts: size, digest, digests of chunks."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from images.artifact.manifest import CHUNK_SIZE, Artifact
from images.values import files


def blocks(path: Path) -> Iterator[bytes]:
    """The content of a file in blocks of `CHUNK_SIZE`; only the last may be shorter.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            yield from iter(lambda: file.read(CHUNK_SIZE), b"")
    except OSError as error:
        raise files.refused(f"cannot read {path}", error) from error


def measure(path: Path, *, chunks: bool = False) -> Artifact:
    """A file as an artifact: its size, its digest, and, for a root image, the digest of each chunk.

    Raises:
        StoreError: it cannot be read.
    """
    whole, parts, size = hashlib.sha256(), list[str](), 0
    for chunk in blocks(path):
        whole.update(chunk)
        size += len(chunk)
        if chunks:
            parts.append(hashlib.sha256(chunk).hexdigest())
    return Artifact(sha256=whole.hexdigest(), size=size, chunks=tuple(parts))
