"""An image into a plain folder with the store's layout: for nginx, a bucket, a disk that is carried."""

from collections.abc import Collection
from pathlib import Path

from images.artifact.manifest import Artifact, Manifest
from images.artifact.measure import copy, is_whole
from images.artifact.signing import PublicKey
from images.errors import CorruptError, StoreError
from images.registry.artifact import read_blobs
from images.registry.download import Progress
from images.registry.push import publishable
from images.store import modes
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
        for directory in (folder, folder / "blobs", image.parent, image):
            modes.folder(directory, folder)
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
        if _is_there(target, artifact):
            progress(artifact.size)
            continue
        with files.replacing(target) as file:
            if copy(store.blob_path(artifact.sha256), file, progress).sha256 != artifact.sha256:
                raise CorruptError(f"{name} of the store is not what its digest says: see `netboot image verify`")
        written += artifact.size
    return written


def _is_there(path: Path, artifact: Artifact) -> bool:
    try:
        return is_whole(path, artifact)
    except StoreError:  # it is replaced
        return False
