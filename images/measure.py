"""Files as artifacts: size, digest, digests of chunks."""

import hashlib
from pathlib import Path

from images.errors import StoreError
from images.manifest import CHUNK_SIZE, Artifact


def measure(path: Path, *, chunks: bool = False) -> Artifact:
    """A file as an artifact: its size, its digest, and, for a root image, the digest of each chunk.

    Raises:
        StoreError: it cannot be read.
    """
    whole, parts, size = hashlib.sha256(), [], 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_SIZE):
                whole.update(chunk)
                parts.append(hashlib.sha256(chunk).hexdigest())
                size += len(chunk)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    return Artifact(sha256=whole.hexdigest(), size=size, chunks=tuple(parts) if chunks else ())
