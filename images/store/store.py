"""The artifact store: content-addressed, immutable, safe against a crash at any instant. Layout: `docs/store.md`.

Readers take no lock. One writer at a time holds the lock file. Every file is written under `tmp/` and renamed into
place; an image exists from the instant its manifest does, which is written last.
"""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from time import time

from images.artifact import signing
from images.artifact.bundle import read_bundle
from images.artifact.manifest import Manifest, read_manifest
from images.errors import CorruptError, NotFoundError, StoreError
from images.store import modes, pointers, site, writing
from images.store.pointers import ChannelState, is_digest
from images.store.writing import Progress
from images.values import files


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the store; `added` in seconds since 1970."""

    digest: str
    manifest: Manifest
    added: int

    @property
    def size(self) -> int:
        """Bytes of all its artifacts."""
        return sum(artifact.size for _, artifact in self.manifest.artifacts)


class Store:
    """The store in one folder. `now` gives seconds since 1970; a writer waits `wait` seconds for another to end."""

    def __init__(self, root: Path, now: Callable[[], float] = time, wait: float = 0.0) -> None:
        self.root, self._now, self._wait = root, now, wait

    def blob_path(self, sha256: str) -> Path:
        """Where a blob lies.

        Raises:
            NotFoundError: there is none, or that is no digest. StoreError: cannot tell, it cannot be reached.
        """
        path = self.root / "blobs" / sha256
        try:
            if is_digest(sha256) and path.is_file():
                return path
        except OSError as error:
            raise files.refused(f"cannot read {path}", error) from error
        raise NotFoundError(f"no blob {sha256[:64]} in {self.root}")

    def manifest_bytes(self, digest: str) -> bytes:
        """The signed bytes of an image's manifest.

        Raises:
            NotFoundError. StoreError: it is there and cannot be read.
        """
        return self._read_image_file(digest, "manifest.json")

    def signature(self, digest: str) -> bytes:
        """The signature over an image's manifest.

        Raises:
            NotFoundError. StoreError: it is there and cannot be read.
        """
        return self._read_image_file(digest, "manifest.sig")

    def manifest(self, digest: str) -> Manifest:
        """An image's manifest.

        Raises:
            NotFoundError, StoreError. CorruptError: its bytes are not those of its digest.
        """
        data = self.manifest_bytes(digest)
        if hashlib.sha256(data).hexdigest() != digest:
            raise CorruptError(f"the manifest of image {digest[:12]} is not what its digest says: remove the image")
        return read_manifest(data)

    def image(self, digest: str) -> Image:
        """One image.

        Raises:
            NotFoundError, CorruptError, StoreError.
        """
        return Image(digest, self.manifest(digest), self._added(digest) // 10**9)

    def images(self) -> tuple[Image, ...]:
        """Every whole image, newest first; one whose manifest is damaged is left to `verify`.

        Raises:
            StoreError: the store cannot be read.
        """
        listed = []
        for digest in self.digests():
            try:
                listed.append((-self._added(digest), digest, self.image(digest)))
            except (CorruptError, NotFoundError):
                continue
        return tuple(image for _, _, image in sorted(listed, key=lambda item: item[:2]))

    def _added(self, digest: str) -> int:
        """Nanoseconds since 1970."""
        try:
            return (self.root / "images" / digest / "manifest.json").stat().st_mtime_ns
        except OSError:  # removed since it was listed
            raise NotFoundError(f"no image {digest} in {self.root}") from None

    def digests(self) -> tuple[str, ...]:
        """The digests of all images, damaged ones too.

        Raises:
            StoreError: the store cannot be read.
        """
        folder = self.root / "images"
        names = filter(is_digest, files.names(folder))
        return tuple(name for name in names if (folder / name / "manifest.json").exists())

    def channel(self, name: str) -> ChannelState | None:
        """Where a channel points, None if it was never set.

        Raises:
            NotFoundError: not a channel's name. CorruptError: its file is damaged. StoreError: it cannot be read.
        """
        pointers.check_name(name, "a channel's")
        return pointers.read_channel(self.root / "channels" / f"{name}.json")

    def channels(self) -> dict[str, ChannelState]:
        """Every channel that was ever set.

        Raises:
            CorruptError: a channel's file is damaged. StoreError: one cannot be read.
        """
        states = map(pointers.read_channel, pointers.listed(self.root / "channels"))
        return {state.name: state for state in states if state}

    def references(self) -> dict[str, frozenset[str]]:
        """Owner → digests of images that it needs (`refs/<owner>.json`).

        Raises:
            CorruptError: a file is damaged; nothing may be removed until it is mended. StoreError.
        """
        return {path.stem: pointers.read_reference(path) for path in pointers.listed(self.root / "refs")}

    def bundle(self) -> tuple[bytes, bytes]:
        """The site bundle and its signature, always a pair that belongs together.

        Raises:
            NotFoundError: none has been signed yet. StoreError: it cannot be read.
        """
        return site.read(self.root)

    def writing(self) -> AbstractContextManager[None]:
        """Hold the writers' lock, with the folders there and what a killed writer left in `tmp/` swept.

        Raises:
            BusyError: another writer holds it, named by its process. StoreError: the file system refuses.
        """
        return writing.locked(self.root, self._wait)

    def add_image(
        self,
        manifest: bytes,
        signature: bytes,
        paths: Mapping[str, Path],
        progress: Progress | None = None,
    ) -> str:
        """Add an image whole and return its digest; adding it again changes nothing but when it was added.

        `paths` maps artifact names to files. `progress` is told the bytes as they are copied.

        Raises:
            CorruptError: a file is not what the manifest says. BusyError. StoreError: disk full, …; nothing is listed.
        """
        value = read_manifest(manifest)
        with self.writing():
            for name, artifact in value.artifacts:
                writing.put_blob(self.root, paths[name], artifact, name, progress)
            files.sync_folder(self.root / "blobs")  # also for blobs whose writer was killed before it did
            folder = self.root / "images" / value.digest
            modes.folder(folder, self.root)
            files.sync_folder(folder.parent)
            staging = self.root / "tmp"
            files.write(folder / "manifest.sig", signature, mode=0o444, staging=staging)
            files.write(folder / "manifest.json", manifest, mode=0o444, staging=staging)
        return value.digest

    def add_signature(self, digest: str, signature: bytes) -> None:
        """Add a signature to an image's; the others stay, but for one by the same key. Its manifest stays as it is.

        Raises:
            NotFoundError: no such image. BadSignatureError: not a signature file, or too many. BusyError, StoreError.
        """
        with self.writing():
            signatures = signing.add(self.signature(digest), signature)
            files.write(
                self.root / "images" / digest / "manifest.sig", signatures, mode=0o444, staging=self.root / "tmp"
            )

    def set_channel(self, name: str, digest: str) -> ChannelState:
        """Point a channel to an image of the store; the one before is remembered.

        Raises:
            NotFoundError: no such image. StoreError: not a channel's name. BusyError. CorruptError: the image's
            manifest is damaged.
        """
        pointers.check_name(name, "a channel's")
        with self.writing():
            self.manifest(digest)
            return pointers.point(self.root, name, digest, int(self._now()))

    def set_references(self, owner: str, digests: frozenset[str]) -> None:
        """Say which images an owner needs; replaces what it said before.

        Raises:
            BusyError. StoreError: not an owner's name, not digests, or the file system refuses.
        """
        pointers.check_name(owner, "an owner's")
        if not all(map(is_digest, digests)):
            raise StoreError(f"references of {owner} must be digests of images")
        with self.writing():
            pointers.refer(self.root, owner, digests)

    def set_bundle(self, bundle: bytes, signature: bytes) -> None:
        """Put a signed site bundle in place: `site` is a link, so that both files change in one instant.

        Raises:
            CorruptError: not a site bundle. BusyError, StoreError.
        """
        read_bundle(bundle)
        with self.writing():
            site.replace(self.root, bundle, signature)

    def _read_image_file(self, digest: str, name: str) -> bytes:
        path = self.root / "images" / digest / name
        try:
            if is_digest(digest):
                return files.bytes_of(path, files.LARGE)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise files.refused(f"cannot read {path}", error) from error
        raise NotFoundError(f"no image {digest[:64]} in {self.root}")
