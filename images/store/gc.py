"""Garbage collection: what nobody needs goes, after a grace; what anybody needs stays, whatever happens meanwhile.

Needed are the images that a channel points to or pointed to last, those that a `refs/` file lists (running boots), and
those that became unneeded less than the grace ago: a script that was served a moment before may still name them. So it
goes in two phases: `unneeded.json` keeps when each image was first seen unneeded, and only a later run removes it.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from images.errors import CorruptError, InUseError, NotFoundError
from images.store import pointers, writing
from images.store.store import Store
from images.values import files

GRACE_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run did, or would do: images removed, images waiting (digest → seconds left), blobs and bytes freed."""

    removed: tuple[str, ...]
    waiting: dict[str, int]
    blobs: int
    freed: int


def needed(store: Store) -> dict[str, tuple[str, ...]]:
    """Digest → by whom, in words.

    Raises:
        CorruptError, StoreError: a channel or reference cannot be read, so nobody can tell.
    """
    why: dict[str, list[str]] = {}
    for state in store.channels().values():
        why.setdefault(state.image, []).append(f"channel {state.name} points to it")
        if state.previous:
            why.setdefault(state.previous, []).append(f"channel {state.name} pointed to it before")
    for owner, digests in store.references().items():
        for digest in sorted(digests):
            why.setdefault(digest, []).append(f"{owner} refer to it")
    return {digest: tuple(reasons) for digest, reasons in why.items()}


def plan(
    digests: tuple[str, ...], keep: frozenset[str], seen: Mapping[str, int], now: int, grace: int
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Pure: which images go now, and since when each of the others has been unneeded."""
    unneeded = {digest: min(seen.get(digest, now), now) for digest in digests if digest not in keep}
    gone = tuple(sorted(digest for digest, since in unneeded.items() if now - since >= grace))
    return gone, {digest: since for digest, since in unneeded.items() if digest not in gone}


def collect(store: Store, now: int, grace: int = GRACE_SECONDS, *, dry_run: bool = False) -> Collected:
    """Remove what nobody has needed for `grace` seconds. `now` in seconds since 1970. `dry_run`: only read.

    A crash leaves blobs of no image, which the next run removes, never an image without its blobs. Nothing is written
    before something was removed, so that a full disk can be emptied.

    Raises:
        CorruptError, StoreError: somebody's needs cannot be read: nothing is removed. BusyError.
    """
    with writing.looked_at(store.root) if dry_run else store.writing():
        keep = frozenset(needed(store))
        added = {image.digest: image.added for image in store.images()}
        seen = {digest: max(since, added.get(digest, 0)) for digest, since in pointers.read_marks(store.root).items()}
        gone, waiting = plan(store.digests(), keep, seen, now, grace)
        blobs = _unused_blobs(store, frozenset(gone), now, grace)
        if not dry_run:
            _remove(store, gone, tuple(blobs))
            pointers.write_marks(store.root, waiting)
    left = {digest: grace - (now - since) for digest, since in waiting.items()}
    return Collected(gone, left, len(blobs), sum(blobs.values()))


def remove(store: Store, digest: str, *, dry_run: bool = False) -> None:
    """Remove one image at once; its blobs go with the next collection. `dry_run`: see only that it may go.

    Raises:
        NotFoundError. InUseError: somebody needs it, named. BusyError, CorruptError, StoreError.
    """
    with writing.looked_at(store.root) if dry_run else store.writing():
        if digest not in store.digests():
            raise NotFoundError(f"no image {digest} in {store.root}")
        reasons = needed(store).get(digest)
        if reasons:
            raise InUseError(f"image {digest[:12]} is in use: {'; '.join(reasons)}")
        if dry_run:
            return
        _remove_image(store, digest)


def _remove(store: Store, images: tuple[str, ...], blobs: tuple[str, ...]) -> None:
    for digest in images:
        _remove_image(store, digest)
    listed = store.digests()
    for name in files.names(store.root / "images"):
        if name not in listed:  # a writer was killed before the manifest, or a removal after it
            shutil.rmtree(store.root / "images" / name)
    for blob in blobs:
        (store.root / "blobs" / blob).unlink()
    files.sync_folder(store.root / "blobs")


def _remove_image(store: Store, digest: str) -> None:
    """The manifest first: from then on there is no such image, whatever else is left."""
    folder = store.root / "images" / digest
    (folder / "manifest.json").unlink()
    files.sync_folder(folder)
    shutil.rmtree(folder)
    files.sync_folder(folder.parent)


def _unused_blobs(store: Store, gone: frozenset[str], now: int, grace: int) -> dict[str, int]:
    """Blobs of no remaining image → bytes; old enough that they are not those of an image that is about to be added."""
    used: set[str] = set()
    for digest in store.digests():
        if digest not in gone:
            try:
                used |= {artifact.sha256 for _, artifact in store.manifest(digest).artifacts}
            except CorruptError:
                raise CorruptError(
                    f"the manifest of image {digest[:12]} is damaged, so nobody can tell which blobs it needs: "
                    f"`netboot image rm {digest}` first"
                ) from None
            except NotFoundError:  # removed since it was listed, while a dry run looks
                continue
    paths = (store.root / "blobs" / name for name in files.names(store.root / "blobs") if name not in used)
    return {path.name: status.st_size for path in paths if now - (status := path.stat()).st_mtime >= grace}
