"""The last step: a finished, signed image enters the store, whole or not at all. No other step touches the store."""

from pathlib import Path

from images.store.store import Store

VERSION = 1


def store(into: Store, manifest: Path, signature: bytes, artifacts: dict[str, Path]) -> str:
    """Add the image and return its digest.

    Raises:
        BusyError: another writer is at it. StoreError: the disk is full, or the store cannot be written.
    """
    return into.add_image(manifest.read_bytes(), signature, artifacts)
