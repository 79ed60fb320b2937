"""`netboot image sign`: an image of the store gets the active key's signature too."""

from pathlib import Path

import click

from images.artifact.keyring import KeyRing
from images.artifact.signing import signers_of
from images.store import check
from images.store.lookup import resolve
from images.store.store import Store
from netboot.cli.output import output_option, show
from netboot.cli.paths import config_option, find_paths, keys_option, store_option

_WAIT_SECONDS = 10.0


@click.command()
@click.argument("image")
@config_option
@store_option
@keys_option
@output_option
def sign(image: str, config: Path | None, store: Path | None, keys: Path | None, output: str) -> None:
    """Add the active key's signature to IMAGE, which a trusted key signed before; it need not be built again for that.

    For after `netboot key rotate`: the image stays whole when the old key is retired. The first signature stays the
    first. A machine goes by the keys that were baked into its image's own initrd.

    \b
    Example:  netboot image sign debian-12-minimal
    """
    paths = find_paths(config, store, keys)
    opened, ring = Store(paths.store, wait=_WAIT_SECONDS), KeyRing(paths.keys)
    digest, key = resolve(opened, image), ring.signing_key()
    check.check_signature(opened, digest, ring.trusted())
    before = opened.signature(digest)
    opened.add_signature(digest, key.sign(opened.manifest_bytes(digest)))
    signers = signers_of(opened.signature(digest))
    said = f"image {digest[:12]} is signed by key {' and '.join(signers)}"
    said = f"nothing to do: {said}" if opened.signature(digest) == before else said
    show(output, {"image": digest, "signers": list(signers)}, (), (), said)
