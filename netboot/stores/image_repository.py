"""The artifact store as the service sees it: `netboot.lifecycle.image_repository` on `images.store`."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from images.artifact.bundle import SiteBundle
from images.artifact.diff import read_packages
from images.artifact.keyring import KeyRing
from images.artifact.manifest import Manifest
from images.errors import CorruptError, NotFoundError, SignatureError, StoreError
from images.store import check
from images.store.store import Store
from images.values import files
from netboot import credentials
from netboot.config import Config
from netboot.lifecycle.image_repository import Document, ListedImage
from netboot.reread import Reread

WHAT: Mapping[Document, str] = {"packages": "list of packages", "sbom": "bill of materials"}


def open_image_repository(config: Config, wait: float = 0.0) -> "StoreImageRepository":
    """The store of a site, with the keys that are trusted there. `wait`: seconds for which a write waits for another
    writer to end, as the publisher, which writes down for a moment which images are to stay."""
    return StoreImageRepository(Store(config.store, wait=wait), KeyRing(config.keys, credentials.read))


class StoreImageRepository:
    """Verifies with the public keys that are in the ring *now*: one that was retired stops its images."""

    def __init__(self, store: Store, ring: KeyRing) -> None:
        self._store = store
        self._keys = Reread("keys", lambda: _key_files(ring), ring.trusted, SignatureError)
        """A file that is no key, dropped into the folder, must not stop every boot."""

    def channel(self, name: str) -> str | None:
        state = self._store.channel(name)
        return state.image if state else None

    def images(self) -> list[ListedImage]:
        images = self._store.images()
        return [ListedImage(image.digest, image.manifest.name, image.added * 1000) for image in images]

    def verified(self, digest: str) -> Manifest:
        check.check_signature(self._store, digest, self._keys.current())
        manifest = self._store.manifest(digest)
        findings = check.check_sizes(self._store, manifest)
        if findings:
            raise CorruptError("; ".join(map(str, findings)))
        return manifest

    def image(self, digest: str) -> Manifest:
        return self._store.manifest(digest)

    def document(self, digest: str, name: Document) -> bytes:
        artifact = dict(self._store.manifest(digest).artifacts).get(name)
        if artifact is None:
            raise NotFoundError(f"image {digest[:12]} has no {name}: the netboot that built it made none")
        unreadable = f"the {WHAT[name]} of image {digest[:12]} cannot be read"
        try:
            data = files.bytes_of(self._store.blob_path(artifact.sha256), files.LARGE)
        except OSError as error:
            raise CorruptError(unreadable) from error
        if hashlib.sha256(data).hexdigest() != artifact.sha256:
            raise CorruptError(f"{unreadable}: it is not what was signed")
        return data

    def kubelet(self, digest: str) -> str:
        data = self.document(digest, "packages")
        try:
            listed = read_packages(data)
        except CorruptError as error:
            raise CorruptError(f"the list of packages of image {digest[:12]} cannot be read") from error
        return next((version for name, version in listed.items() if name.partition(":")[0] == "kubelet"), "")

    def bundle(self) -> SiteBundle | None:
        try:
            data, signature = self._store.bundle()
        except NotFoundError:
            return None
        return check.check_bundle(data, signature, self._keys.current())

    def point(self, channel: str, digest: str) -> None:
        self._store.set_channel(channel, digest)

    def keep(self, owner: str, digests: Sequence[str]) -> None:
        try:
            known = self._store.references().get(owner)
        except CorruptError:
            known = None
        if known != frozenset(digests):
            self._store.set_references(owner, frozenset(digests))


def _key_files(ring: KeyRing) -> Iterator[Path]:
    """The folder too: of a key that is taken away, that is what changes."""
    yield ring.folder
    with suppress(StoreError):  # that the folder cannot be listed is told by what reads the keys
        yield from (ring.folder / name for name in files.names(ring.folder) if name.endswith(".pub"))
