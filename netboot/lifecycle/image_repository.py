"""What the service needs of the artifact store. The adapter is `netboot.stores.image_repository`."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from images.artifact.bundle import SiteBundle
from images.artifact.manifest import Manifest

Document = Literal["packages", "sbom"]


class ListedImage(NamedTuple):
    """An image as it is listed: nothing about it has been verified."""

    digest: str
    name: str
    added_ms: int
    """When it came into the store, milliseconds since 1970."""


class ImageRepository(Protocol):
    """Reading. Every method raises images.errors.StoreError when the store cannot be read."""

    def channel(self, name: str) -> str | None:
        """The digest of the image that a channel points to; None: it was never set.

        Raises:
            images.errors.CorruptError: what was set cannot be read, in words.
        """
        ...

    def images(self) -> list[ListedImage]:
        """Every image, the newest first."""
        ...

    def verified(self, digest: str) -> Manifest:
        """The manifest of an image whose signature is by a trusted key and whose blobs are there, of the right size.

        Raises:
            images.errors.ImageError: NotFoundError, SignatureError or CorruptError, in words.
        """
        ...

    def image(self, digest: str) -> Manifest:
        """The manifest of an image as it lies there: nobody's signature has been looked at.

        Raises:
            images.errors.ImageError: NotFoundError or CorruptError, in words.
        """
        ...

    def document(self, digest: str, name: Document) -> bytes:
        """A document of an image, whole, as its manifest has it.

        Raises:
            images.errors.ImageError: NotFoundError, also where the image has none of that name; CorruptError; in words.
        """
        ...

    def kubelet(self, digest: str) -> str:
        """The version of an image's kubelet, as its package has it; "": none of its packages is one.

        Raises:
            images.errors.ImageError: NotFoundError or CorruptError, in words.
        """
        ...

    def bundle(self) -> SiteBundle | None:
        """The site bundle; None: there is none yet.

        Raises:
            images.errors.ImageError: SignatureError or CorruptError, in words.
        """
        ...


class ImageRepositoryWriter(Protocol):
    """Writing, of the little that the service writes. Raises images.errors.StoreError (BusyError: try again)."""

    def point(self, channel: str, digest: str, who: str, *, end: bool = False) -> list[int]:
        """Let a channel point to an image, also where nobody can read what it pointed to. `who`: sets it, for people;
        `end`: also where replicas share a rollout of it that is under way, which ends by that. Returns the numbers of
        those that did.

        Raises:
            RolloutRefusedError: there is one, and it is not to end. CannotTellError: other replicas cannot be told, and
            nothing was done.
        """
        ...

    def keep(self, owner: str, digests: Sequence[str]) -> None:
        """From now on the images that gc must keep for `owner` are these."""
        ...
