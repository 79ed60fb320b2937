"""Garbage collection: what nobody needs goes, after a grace; what anybody needs stays, whatever happens meanwhile.

Needed are the images that a channel points to or pointed to last, those that a `refs/` file lists (running boots), and
those that became unneeded less than the grace ago: a script that was served a moment before may still name them. So it
goes in two phases: `unneeded.json` keeps when each image was first seen unneeded, and only a later run removes it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from images import files
from images.errors import CorruptError, InUseError, NotFoundError
from images.store import Store

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
        CorruptError: a channel or reference cannot be read, so nobody can tell.
    """
    why: dict[str, list[str]] = {}
    for state in store.channels().values():
        why.setdefault(state.image, []).append(f"channel {state.name} points to it")
        if state.previous:
            why.setdefault(state.previous, []).append(f"channel {state.name} pointed to it before")
    for owner, digests in store.references().items():
        for digest in digests:
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
    """Remove what nobody has needed for `grace` seconds. `now` in seconds since 1970.

    Raises:
        CorruptError: somebody's needs cannot be read: nothing is removed. BusyError, StoreError.
    """
    with store.writing():
        marks = store.root / "unneeded.json"
        keep = frozenset(needed(store))
        added = {image.digest: image.added for image in store.images()}
        seen = {digest: max(since, added.get(digest, 0)) for digest, since in _read_marks(store).items()}
        gone, waiting = plan(store.digests(), keep, seen, now, grace)
        blobs = _unused_blobs(store, frozenset(gone), now, grace)
        freed = sum((store.root / "blobs" / blob).stat().st_size for blob in blobs)
        if not dry_run:
            files.write(marks, json.dumps(waiting, sort_keys=True).encode(), staging=store.root / "tmp")
            for digest in gone:
                _remove_image(store, digest)
            for blob in blobs:
                (store.root / "blobs" / blob).unlink()
            files.sync_folder(store.root / "blobs")
    left = {digest: grace - (now - since) for digest, since in waiting.items()}
    return Collected(gone, left, len(blobs), freed)


def remove(store: Store, digest: str) -> None:
    """Remove one image at once; its blobs go with the next collection.

    Raises:
        NotFoundError. InUseError: somebody needs it, named. BusyError, CorruptError.
    """
    with store.writing():
        if digest not in store.digests():
            raise NotFoundError(f"no image {digest} in {store.root}")
        reasons = needed(store).get(digest)
        if reasons:
            raise InUseError(f"image {digest[:12]} is in use: {'; '.join(reasons)}")
        _remove_image(store, digest)


def _remove_image(store: Store, digest: str) -> None:
    """The manifest first: from then on there is no such image, whatever else is left."""
    folder = store.root / "images" / digest
    for name in ("manifest.json", "manifest.sig"):
        (folder / name).unlink(missing_ok=True)
        files.sync_folder(folder)
    folder.rmdir()
    files.sync_folder(folder.parent)


def _unused_blobs(store: Store, gone: frozenset[str], now: int, grace: int) -> tuple[str, ...]:
    """Blobs of no remaining image, old enough that they are not those of an image that is about to be added."""
    used: set[str] = set()
    for digest in store.digests():
        if digest not in gone:
            try:
                used |= {artifact.sha256 for _, artifact in store.manifest(digest).artifacts}
            except CorruptError:
                raise CorruptError(
                    f"the manifest of image {digest[:12]} is damaged, so nobody can tell which blobs it needs: "
                    f"`netboot image rm {digest[:12]}` first"
                ) from None
    paths = (path for path in (store.root / "blobs").iterdir() if path.name not in used)
    return tuple(sorted(path.name for path in paths if now - path.stat().st_mtime >= grace))


def _read_marks(store: Store) -> dict[str, int]:
    try:
        value = json.loads((store.root / "unneeded.json").read_bytes())
        return {str(digest): int(since) for digest, since in value.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}  # only the waiting time is lost: everything waits the whole grace again
