"""The artifact store as the service sees it: `ImageRepository` and its writer` of `images.store`."""

import logging
from collections.abc import Sequence

from images.artifact.bundle import SiteBundle
from images.artifact.keyring import KeyRing
from images.artifact.manifest import Manifest
from images.artifact.signing import PublicKey
from images.errors import CorruptError, NotFoundError, SignatureError
from images.store import check
from images.store.store import Store
from netboot.lifecycle.image_repository import ListedImage

log = logging.getLogger(__name__)


class StoreImageRepository:
    """Verifies with the public keys that are in the ring *now*: one that was retired stops its images."""

    def __init__(self, store: Store, ring: KeyRing) -> None:
        self._store, self._ring = store, ring
        self._trusted: tuple[PublicKey, ...] = ()
        self._problem: str | None = None

    def channel(self, name: str) -> str | None:
        """See `ImageRepository.channel`."""
        state = self._store.channel(name)
        return state.image if state else None

    def images(self) -> list[ListedImage]:
        """See `ImageRepository.images`."""
        found = self._store.images()
        return [ListedImage(one.digest, one.manifest.name, one.added * 1000) for one in found]

    def verified(self, digest: str) -> Manifest:
        """See `ImageRepository.verified`."""
        check.check_signature(self._store, digest, self._keys())
        manifest = self._store.manifest(digest)
        findings = check.check_sizes(self._store, manifest)
        if findings:
            raise CorruptError("; ".join(map(str, findings)))
        return manifest

    def bundle(self) -> SiteBundle | None:
        """See `ImageRepository.bundle`."""
        try:
            data, signature = self._store.bundle()
        except NotFoundError:
            return None
        return check.check_bundle(data, signature, self._keys())

    def point(self, channel: str, digest: str) -> str | None:
        """See `ImageRepositoryWriter.point`."""
        before = self.channel(channel)
        self._store.set_channel(channel, digest)
        return before

    def keep(self, owner: str, digests: Sequence[str]) -> None:
        """See `ImageRepositoryWriter.keep`."""
        try:
            known = self._store.references().get(owner)
        except CorruptError:
            known = None
        if known != frozenset(digests):
            self._store.set_references(owner, frozenset(digests))

    def _keys(self) -> tuple[PublicKey, ...]:
        """A file that is no key, dropped into the folder, must not stop every boot: the keys before stay in force."""
        try:
            self._trusted, problem = self._ring.trusted(), None
        except SignatureError as error:
            if not self._trusted:
                raise
            problem = str(error)
        if problem != self._problem and problem is not None:
            log.error("keys: %s; the keys read before stay in force", problem)
        self._problem = problem
        return self._trusted
