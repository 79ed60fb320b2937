"""`netboot image verify`, what was signed against every byte, and `netboot image sign`, a further signature."""

import dataclasses

import click

from images.artifact.keyring import KeyRing
from images.artifact.signing import signers_of
from images.errors import ImageError
from images.store import check
from images.store.lookup import resolve
from images.store.store import Store
from netboot.cli import complete
from netboot.cli.output import output_option, progress, show
from netboot.cli.paths import Paths, paths_options

_WAIT_SECONDS = 10.0


@click.command()
@click.argument("image", shell_complete=complete.images)
@paths_options()
@output_option
def sign(image: str, paths: Paths, output: str) -> None:
    """Add the active key's signature to IMAGE, which a trusted key signed before; it need not be built again for that.

    For after `netboot key rotate`: the image stays whole when the old key is retired. The first signature stays the
    first. A machine goes by the keys that were baked into its image's own initrd.

    \b
    Example:  netboot image sign debian-12-minimal
    """
    opened, ring = Store(paths.store, wait=_WAIT_SECONDS), KeyRing(paths.keys)
    digest, key = resolve(opened, image), ring.signing_key()
    check.check_signature(opened, digest, ring.trusted())
    before = opened.signature(digest)
    opened.add_signature(digest, key.sign(opened.manifest_bytes(digest)))
    signers = signers_of(opened.signature(digest))
    nothing = "nothing to do: " if opened.signature(digest) == before else ""
    summary = f"{nothing}image {digest[:12]} is signed by key {' and '.join(signers)}"
    show(output, {"image": digest, "signers": list(signers)}, (), (), summary)


@click.command()
@click.argument("image", shell_complete=complete.images)
@paths_options()
@output_option
def verify(image: str, paths: Paths, output: str) -> None:
    """Read every byte of IMAGE and compare it with what was signed. Exit status 1 when anything is wrong.

    A finding names the part, where the damage is, and what to do.

    \b
    Example:  netboot image verify debian-12-minimal
    """
    opened = Store(paths.store)
    digest = resolve(opened, image)
    with progress(f"verifying {digest[:12]}", _size(opened, digest)) as advance:
        findings = check.check_image(opened, digest, KeyRing(paths.keys).trusted(), advance)
    rows = [(finding.part, finding.problem, finding.remedy) for finding in findings]
    value = {"image": digest, "findings": [dataclasses.asdict(finding) for finding in findings]}
    show(output, value, ("part", "problem", "remedy"), rows, f"image {digest[:12]} is what was signed, every byte")
    if findings:
        raise click.exceptions.Exit(1)


def _size(store: Store, digest: str) -> int:
    try:
        return store.image(digest).size
    except ImageError:
        return 0
