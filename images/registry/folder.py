"""An image into a plain folder with the store's layout: for nginx, a bucket, a disk that is carried."""

import hashlib
from collections.abc import Collection
from pathlib import Path

from images.artifact.manifest import Manifest
from images.artifact.measure import blocks
from images.artifact.signing import PublicKey
from images.errors import CorruptError, StoreError
from images.registry.artifact import read_blobs
from images.registry.download import Progress
from images.registry.push import publishable
from images.store.store import Store
from images.values import files


def export(store: Store, digest: str, folder: Path, trusted: Collection[PublicKey], progress: Progress) -> int:
    """Write an image below `folder`, the manifest last; how many bytes were written. Blobs that are there, whole, stay.

    Raises:
        images.errors.ImageError: not signed by a trusted key, damaged, or the file system refuses; each file is whole
        or not there, and without its manifest the image is not listed.
    """
    manifest = publishable(store, digest, trusted)
    image = folder / "images" / digest
    try:
        for one in (folder / "blobs", image):
            one.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.refused(f"cannot make {folder}", error) from error
    written = _blobs(store, manifest, folder / "blobs", progress)
    files.write(image / "manifest.sig", store.signature(digest))
    files.write(image / "manifest.json", store.manifest_bytes(digest))
    return written


def _blobs(store: Store, manifest: Manifest, folder: Path, progress: Progress) -> int:
    written = 0
    for name, artifact in read_blobs(manifest):
        target = folder / artifact.sha256
        if _whole(target, artifact.sha256):
            progress(artifact.size)
            continue
        digest = hashlib.sha256()
        with files.replacing(target) as file:
            for block in blocks(store.blob_path(artifact.sha256)):
                digest.update(block)
                file.write(block)
                progress(len(block))
            if digest.hexdigest() != artifact.sha256:
                raise CorruptError(f"{name} of the store is not what its digest says: see `netboot image verify`")
        written += artifact.size
    return written


def _whole(path: Path, sha256: str) -> bool:
    if not path.is_file():
        return False
    digest = hashlib.sha256()
    try:
        for block in blocks(path):
            digest.update(block)
    except StoreError:
        return False
    return digest.hexdigest() == sha256
