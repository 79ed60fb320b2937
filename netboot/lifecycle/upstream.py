"""What the service needs of the place that has images which are not here yet. Adapter: `netboot.stores.upstream`."""

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from images.errors import CorruptError, ImageError, NotFoundError
from netboot.lifecycle.image_repository import ImageRepository
from netboot.lifecycle.snapshot import Snapshot


class Upstream(Protocol):
    """A registry or a plain origin."""

    @property
    def where(self) -> str:
        """The place, for words."""
        ...

    def fetch(self, digest: str, progress: Callable[[int, int], None]) -> int:
        """Fetch an image, verify it whole, and only then put it into the store; how many bytes were fetched.

        `progress(done, of)` in bytes; what it raises ends the work, and nothing is left of it.

        Raises:
            images.errors.ImageError: in words; whatever it is, trying again later may be right.
        """
        ...


def fetching(where: str) -> str:
    """Why an image cannot be used that is on its way, or will be in a moment."""
    return f"it is not here yet: being fetched from {where}"


def missing(snapshot: Snapshot, repository: ImageRepository) -> list[str]:
    """The images of channels, and those that rollouts assigned, that are not in the store, or not whole there, and not
    revoked: what is to be fetched."""
    digests = dict[str, None]()
    for digest in _wanted(snapshot, repository):
        if digest in snapshot.revocations.images:
            continue
        try:
            repository.verified(digest)
        except (NotFoundError, CorruptError):
            digests[digest] = None
        except ImageError:  # signed by nobody whom we trust, or the store cannot be read: fetching would not mend it
            continue
    return list(digests)


def _wanted(snapshot: Snapshot, repository: ImageRepository) -> list[str]:
    """Each once."""
    said = dict[str, None]()
    for channel in snapshot.inventory.channels:
        with suppress(ImageError):  # nobody can tell what was meant
            digest = channel.image or repository.channel(channel.name)
            if digest is not None:
                said[digest] = None
    return list(said | dict.fromkeys(assignment.image for assignment in snapshot.assigned.values()))
