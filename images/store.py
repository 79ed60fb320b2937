"""The artifact store: content-addressed, immutable, safe against a crash at any instant. Layout: `docs/store.md`.

Readers take no lock. One writer at a time holds the lock file. Every file is written under `tmp/` and renamed into
place; an image exists from the instant its manifest does, which is written last.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

from images import files
from images.bundle import SiteBundle
from images.errors import BusyError, CorruptError, NotFoundError, StoreError
from images.manifest import Artifact, Manifest, read_manifest
from images.measure import measure
from images.pointers import ChannelState, read_channel, read_reference

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
BLOCK = 1 << 20


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
    """The store in one folder. `now` gives seconds since 1970."""

    def __init__(self, root: Path, now: Callable[[], float] = time) -> None:
        self.root, self._now = root, now

    # Readers

    def blob_path(self, sha256: str) -> Path:
        """Where a blob lies.

        Raises:
            NotFoundError: there is none, or that is no digest.
        """
        path = self.root / "blobs" / sha256
        if not _DIGEST.fullmatch(sha256) or not path.is_file():
            raise NotFoundError(f"no blob {sha256[:64]} in {self.root}")
        return path

    def manifest_bytes(self, digest: str) -> bytes:
        """The signed bytes of an image's manifest.

        Raises:
            NotFoundError.
        """
        return self._read_image_file(digest, "manifest.json")

    def signature(self, digest: str) -> bytes:
        """The signature over an image's manifest.

        Raises:
            NotFoundError.
        """
        return self._read_image_file(digest, "manifest.sig")

    def manifest(self, digest: str) -> Manifest:
        """An image's manifest.

        Raises:
            NotFoundError, CorruptError: its bytes are not those of its digest.
        """
        data = self.manifest_bytes(digest)
        if hashlib.sha256(data).hexdigest() != digest:
            raise CorruptError(f"the manifest of image {digest[:12]} is not what its digest says: remove the image")
        return read_manifest(data)

    def image(self, digest: str) -> Image:
        """One image.

        Raises:
            NotFoundError, CorruptError.
        """
        added = self.root / "images" / digest / "manifest.json"
        return Image(digest, self.manifest(digest), int(added.stat().st_mtime))

    def images(self) -> tuple[Image, ...]:
        """Every whole image, newest first; one whose manifest is damaged is left to `verify`."""
        found = []
        for digest in self.digests():
            try:
                found.append(self.image(digest))
            except (CorruptError, NotFoundError, OSError):
                continue
        return tuple(sorted(found, key=lambda image: (-image.added, image.digest)))

    def digests(self) -> tuple[str, ...]:
        """The digests of all images, damaged ones too."""
        return tuple(sorted(path.parent.name for path in self.root.glob("images/*/manifest.json")))

    def channels(self) -> dict[str, ChannelState]:
        """Every channel that was ever set.

        Raises:
            CorruptError: a channel's file is damaged.
        """
        paths = sorted(self.root.glob("channels/*.json"))
        return {path.stem: read_channel(path) for path in paths if _NAME.fullmatch(path.stem)}

    def references(self) -> dict[str, frozenset[str]]:
        """Owner → digests of images that it needs (`refs/<owner>.json`).

        Raises:
            CorruptError: a file is damaged; nothing may be removed until it is mended.
        """
        return {path.stem: read_reference(path) for path in sorted(self.root.glob("refs/*.json"))}

    def bundle(self) -> tuple[bytes, bytes]:
        """The site bundle and its signature.

        Raises:
            NotFoundError: none has been signed yet.
        """
        folder = self.root / "site"
        try:
            return (folder / "bundle.json").read_bytes(), (folder / "bundle.sig").read_bytes()
        except OSError:
            raise NotFoundError(f"no signed site bundle in {self.root}: run `netboot config bundle`") from None

    # Writers

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writers' lock, with the folders there and what a killed writer left in `tmp/` swept.

        Raises:
            BusyError: another writer holds it, named by its process. StoreError: the file system refuses.
        """
        try:
            for name in ("blobs", "images", "channels", "refs", "site", "tmp"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"cannot write to the store {self.root}: {error.strerror}") from None
        try:
            self._lock(lock)
            for left in (self.root / "tmp").iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            yield
        finally:
            os.close(lock)

    def _lock(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
            raise BusyError(f"another process (pid {holder}) is writing to the store {self.root}: try again") from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)

    def add_image(
        self, manifest: bytes, signature: bytes, blobs: dict[str, Path], progress: Callable[[int], None] | None = None
    ) -> str:
        """Add an image whole and return its digest; adding it again changes nothing.

        `blobs` maps artifact names to files; `progress` is told the bytes as they are copied.

        Raises:
            CorruptError: a file is not what the manifest says. BusyError. StoreError: disk full, …; nothing is listed.
        """
        value = read_manifest(manifest)
        with self.writing():
            for name, artifact in value.artifacts:
                self._add_blob(blobs[name], artifact, name, progress)
            folder = self.root / "images" / value.digest
            folder.mkdir(exist_ok=True)
            staging = self.root / "tmp"
            files.write(folder / "manifest.sig", signature, mode=0o444, staging=staging)
            files.sync_folder(folder.parent)
            files.write(folder / "manifest.json", manifest, mode=0o444, staging=staging)
        return value.digest

    def _add_blob(self, source: Path, artifact: Artifact, name: str, progress: Callable[[int], None] | None) -> None:
        target = self.root / "blobs" / artifact.sha256
        if target.is_file() and measure(target).sha256 == artifact.sha256:
            os.utime(target)  # wanted again: gc counts from now
            return
        digest = hashlib.sha256()
        try:
            with source.open("rb") as reader, files.replacing(target, mode=0o444, staging=self.root / "tmp") as writer:
                while block := reader.read(BLOCK):
                    digest.update(block)
                    writer.write(block)
                    if progress:
                        progress(len(block))
                if digest.hexdigest() != artifact.sha256:
                    raise CorruptError(f"{source} is not the {name} that the manifest lists: build the image again")
        except OSError as error:
            raise StoreError(f"cannot read {source}: {error.strerror}") from None

    def set_channel(self, name: str, digest: str) -> ChannelState:
        """Point a channel to an image of the store; the one before is remembered.

        Raises:
            NotFoundError: no such image. StoreError: not a channel's name. BusyError.
        """
        if not _NAME.fullmatch(name):
            raise StoreError(f"{name!r} cannot be a channel's name: lower-case letters, digits, '-' and '.'")
        with self.writing():
            self.manifest(digest)
            old = self.channels().get(name)
            if old is not None and old.image == digest:
                return old
            new = ChannelState(name, digest, old.image if old else None, int(self._now()))
            body = {"image": new.image, "previous": new.previous, "at": new.at}
            self._write_json(f"channels/{name}.json", body)
        return new

    def set_references(self, owner: str, digests: frozenset[str]) -> None:
        """Say which images an owner needs; replaces what it said before.

        Raises:
            BusyError, StoreError.
        """
        with self.writing():
            self._write_json(f"refs/{owner}.json", {"images": sorted(digests)})

    def set_bundle(self, bundle: bytes, signature: bytes) -> None:
        """Put a signed site bundle in place.

        A machine that fetches between the two writes has a pair that does not verify, and fetches both again.

        Raises:
            BusyError, StoreError.
        """
        SiteBundle.model_validate_json(bundle)
        with self.writing():
            staging = self.root / "tmp"
            files.write(self.root / "site" / "bundle.sig", signature, staging=staging)
            files.write(self.root / "site" / "bundle.json", bundle, staging=staging)

    def _write_json(self, name: str, value: Any) -> None:
        files.write(self.root / name, json.dumps(value, sort_keys=True).encode() + b"\n", staging=self.root / "tmp")

    def _read_image_file(self, digest: str, name: str) -> bytes:
        try:
            if not _DIGEST.fullmatch(digest):
                raise FileNotFoundError
            return (self.root / "images" / digest / name).read_bytes()
        except OSError:
            raise NotFoundError(f"no image {digest[:64]} in {self.root}") from None
