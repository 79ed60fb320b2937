"""`netboot image gc`, `rm`: images that nobody needs go. Works on local files."""

import dataclasses
from contextlib import AbstractContextManager, nullcontext
from time import time

import click

from images.errors import ImageError
from images.store.gc import GRACE_SECONDS, collect, remove
from images.store.lookup import resolve
from images.store.store import Store
from netboot.cli import complete, file_acts
from netboot.cli.dry_run import local_dry_run_option
from netboot.cli.image import mib
from netboot.cli.output import output_option, show
from netboot.cli.paths import Paths, paths_options

_WAIT_SECONDS = 10.0
"""How long a command waits for another writer of the store."""


@click.command()
@click.option("--grace", type=click.IntRange(min=0), default=GRACE_SECONDS, show_default=True, help="Seconds.")
@local_dry_run_option
@paths_options(keys=False)
@output_option
def gc(grace: int, dry_run: bool, paths: Paths, output: str) -> None:
    """Remove images that nobody has needed for a while, and blobs of no image.

    An image stays while a channel points to it (or did last), while a boot refers to it, and --grace seconds longer,
    counted from the first run that saw it unneeded: so run it regularly. A machine in the middle of a download keeps
    what it has begun to read.

    \b
    Example:  netboot image gc --dry-run
    """
    opened = Store(paths.store, wait=_WAIT_SECONDS)
    with nullcontext() if dry_run else _recorded(paths, opened):
        done = collect(opened, int(time()), grace, dry_run=dry_run)
    verb = "would be removed" if dry_run else "removed"
    rows = [(digest[:12], verb) for digest in done.removed]
    rows += [(digest[:12], f"unneeded; may go in {left} s") for digest, left in done.waiting.items()]
    rows += [(f"{done.blobs} blobs", f"{verb}, {mib(done.freed)}")] if done.blobs else []
    value = dataclasses.asdict(done) | ({"dry_run": True} if dry_run else {})
    show(output, value, ("image", ""), rows, "nothing to remove")


@click.command()
@click.argument("image", shell_complete=complete.images)
@local_dry_run_option
@paths_options(keys=False)
@output_option
def rm(image: str, dry_run: bool, paths: Paths, output: str) -> None:
    """Remove IMAGE at once, unless somebody needs it: then the answer says who.

    \b
    Example:
      netboot image rm 4c1d22e0 --dry-run
      netboot image rm 4c1d22e0
    """
    opened = Store(paths.store, wait=_WAIT_SECONDS)
    digest = resolve(opened, image)
    if dry_run:
        remove(opened, digest, dry_run=True)
        show(output, {"removed": digest, "dry_run": True}, (), (), f"image {digest[:12]} would be removed")
        return
    named = {"image": digest, "name": _name(opened, digest)}

    def write(before: file_acts.Stood, after: file_acts.Stood, result: str) -> None:
        file_acts.record_of(paths, "store", "image-rm", {"image": digest}, before=before, after=after, result=result)

    with file_acts.recorded(lambda: named if digest in opened.digests() else None, write):
        remove(opened, digest)
    summary = f"removed image {digest[:12]}; `netboot image gc` frees its blobs"
    show(output, {"removed": digest}, (), (), summary)


def _recorded(paths: Paths, store: Store) -> AbstractContextManager[None]:
    """Around a collection: the images that went, also where it ended before all of them had."""

    def write(before: file_acts.Stood, after: file_acts.Stood, result: str) -> None:
        left = (after or {}).get("images", ())
        gone = [digest for digest in (before or {}).get("images", ()) if digest not in left]
        if gone:
            file_acts.record_of(paths, "store", "image-gc", {}, before={"images": gone}, result=result)

    return file_acts.recorded(lambda: {"images": store.digests()}, write)


def _name(store: Store, digest: str) -> str | None:
    """Of its recipe; None: it is damaged, and may go all the same."""
    try:
        return store.manifest(digest).name
    except ImageError:
        return None
