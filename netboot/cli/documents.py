"""`netboot image cat`: one document of an image, as it was signed."""

import hashlib
import sys
from pathlib import Path

import click

from images.artifact.measure import blocks
from images.errors import CorruptError, NotFoundError
from images.store.lookup import resolve
from images.store.store import Store
from netboot.cli.paths import config_option, find_paths, store_option

DOCUMENTS = ("manifest", "packages", "config", "files", "sbom", "provenance", "licences")


@click.command("cat")
@click.argument("image")
@click.argument("document", type=click.Choice(DOCUMENTS))
@config_option
@store_option
def cat(image: str, document: str, config: Path | None, store: Path | None) -> None:
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
    opened = Store(store or find_paths(config, store, None).store)
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
    found = hashlib.sha256()
    for block in blocks(path):
        found.update(block)
    if found.hexdigest() != artifact.sha256:
        raise CorruptError(f"{document} of image {digest[:12]} is damaged; see `netboot image verify {digest[:12]}`")
    for block in blocks(path):
        sys.stdout.buffer.write(block)
