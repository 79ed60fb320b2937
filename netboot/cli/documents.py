"""`netboot image cat`: one document of an image as it was signed; `netboot image diff`: what differs between two."""

import dataclasses
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from images.artifact.diff import Diff, Packages, diff, read_packages
from images.artifact.manifest import Manifest
from images.artifact.measure import blocks
from images.build.documents import compare
from images.build.documents.compare import Change, Comparison
from images.build.documents.listing import Entry
from images.errors import CorruptError, NotFoundError
from images.store.lookup import resolve
from images.store.store import Store
from netboot.cli import complete
from netboot.cli.output import output_option, show
from netboot.cli.paths import Paths, paths_options

DOCUMENTS = ("manifest", "packages", "config", "files", "sbom", "provenance", "licences")
SHOWN = 20
"""Rows of a part that people are shown; `--all` shows every one."""

Row = tuple[str, str, str]


@click.command("cat")
@click.argument("image", shell_complete=complete.images)
@click.argument("document", type=click.Choice(DOCUMENTS))
@paths_options(keys=False)
def cat(image: str, document: str, paths: Paths) -> None:
    """Print a DOCUMENT of IMAGE, byte by byte as it was signed.

    \b
      packages     JSON: [[name, version, architecture], ...]
      config       the kernel's configuration
      files        a line of JSON for each path of the root
      sbom         CycloneDX 1.6
      provenance   in-toto Statement with SLSA's predicate
      licences     a line of JSON for each package
      manifest     what binds them all, and what is signed

    \b
    Example:  netboot image cat debian-12-minimal sbom > sbom.cdx.json
    """
    opened = Store(paths.store)
    digest = resolve(opened, image)
    manifest = opened.manifest(digest)
    if document == "manifest":
        click.echo(opened.manifest_bytes(digest), nl=False)
        return
    artifact = dict(manifest.artifacts).get(document)
    if artifact is None:
        raise NotFoundError(
            f"image {digest[:12]} has no {document}: the netboot that built it made none; build it again"
        )
    path = opened.blob_path(artifact.sha256)
    content = hashlib.sha256()
    for block in blocks(path):
        content.update(block)
    if content.hexdigest() != artifact.sha256:
        raise CorruptError(f"{document} of image {digest[:12]} is damaged; see `netboot image verify {digest[:12]}`")
    for block in blocks(path):
        sys.stdout.buffer.write(block)


@click.command("diff")
@click.argument("old")
@click.argument("new")
@click.option("--all", "whole", is_flag=True, help=f"Every line; without it, the first {SHOWN} of each part.")
@paths_options(keys=False)
@output_option
def diff_(old: str, new: str, whole: bool, paths: Paths, output: str) -> None:
    """Show what differs between two images: facts, sizes, packages, kernel configuration, modules, files.

    Files are compared by the images' listings: kind, mode, owner, size, content. Nothing is unpacked.

    \b
    Example:  netboot image diff 4c1d22e0 debian-12-minimal
    """
    opened = Store(paths.store)
    digests = [resolve(opened, text) for text in (old, new)]
    was, now = (opened.manifest(digest) for digest in digests)
    changes = diff(was, now, _packages(opened, was), _packages(opened, now))
    old_documents, new_documents = (_documents(opened, manifest) for manifest in (was, now))
    more = compare.compare(old_documents, new_documents, (digests[0][:12], digests[1][:12]))
    value = {"old": digests[0], "new": digests[1], **dataclasses.asdict(changes), **compare.facts(more)}
    limit = None if whole else SHOWN
    known = digests[0] == digests[1] or not more.unknown
    empty = "nothing differs" if known else "nothing differs of what can be compared"
    show(output, value, ("", "old", "new"), rows_of(changes, more, limit), empty)
    if output == "table" and not known:
        for line in more.unknown:
            click.echo(line, err=True)


def rows_of(changes: Diff, more: Comparison, limit: int | None) -> list[Row]:
    """The parts of a table, each headed by what it counts and cut after `limit` rows."""
    facts = [(name, old, new) for name, (old, new) in changes.facts.items()]
    sizes = [(name, _mib(old), _mib(new)) for name, (old, new) in changes.sizes.items()]
    packages = [(name, "", version) for name, version in changes.added.items()]
    packages += [(name, version, "") for name, version in changes.removed.items()]
    packages += [(name, old, new) for name, (old, new) in changes.changed.items()]
    modules = [(name, "", "added") for name in more.modules_added or ()]
    modules += [(name, "removed", "") for name in more.modules_removed or ()]
    config = [(name, old, new) for name, (old, new) in (more.config or {}).items()]
    files = [_file_row(change) for change in more.files or ()]
    rows = facts + sizes
    for title, part in (("packages", packages), ("kernel config", config), ("modules", modules), ("files", files)):
        rows += _part(title, part, limit)
    return rows


def _part(title: str, rows: Sequence[Row], limit: int | None) -> list[Row]:
    if not rows:
        return []
    shown = list(rows[:limit])
    left = len(rows) - len(shown)
    return [(f"{title}: {len(rows)}", "", ""), *shown, *([(f"... and {left} more (--all)", "", "")] if left else [])]


def _file_row(change: Change) -> Row:
    if change.old is None or change.new is None:
        return change.path, _whole(change.old), _whole(change.new)
    return change.path, _aspects(change.old, change.aspects), _aspects(change.new, change.aspects)


def _whole(entry: Entry | None) -> str:
    if entry is None:
        return ""
    size = f", {entry['size']} bytes" if "size" in entry else ""
    return f"{entry['kind']} {entry['mode']}{size}"


def _aspects(entry: Entry, aspects: tuple[str, ...]) -> str:
    """What is different, as this entry has it; a digest's beginning stands for the content."""
    texts = []
    for aspect in aspects:
        values = [entry[name] for name in compare.ASPECTS[aspect] if name in entry]
        text = ":".join(map(str, values)) or "none"
        texts.append(f"{aspect} {text[:12] if aspect == 'content' else text}")
    return ", ".join(texts)


def _documents(store: Store, manifest: Manifest) -> dict[str, Path]:
    """Files of the documents that the image has."""
    return {
        name: store.blob_path(artifact.sha256) for name, artifact in manifest.artifacts if name in ("files", "config")
    }


def _packages(store: Store, manifest: Manifest) -> Packages:
    return read_packages(b"".join(blocks(store.blob_path(manifest.artifacts.packages.sha256))))


def _mib(size: int | None) -> str:
    if size is None:
        return ""
    return f"{size / (1 << 20):,.1f} MiB" if size >= 1 << 20 else f"{size:,} bytes"
