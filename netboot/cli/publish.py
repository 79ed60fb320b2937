"""`netboot image push, pull, promote, export, import`: images to and from elsewhere. No service is needed."""

from pathlib import Path
from typing import Any

import click

from images.artifact.keyring import KeyRing
from images.errors import NotFoundError
from images.registry.reference import is_url, read_origin, read_reference
from images.registry.sources import FolderSource, OriginSource, RegistrySource, Source
from images.store.lookup import resolve
from images.store.pointers import is_digest
from images.store.store import Store
from netboot.cli import complete
from netboot.cli.given_files import NamedFolder
from netboot.cli.output import output_option, progress, show
from netboot.cli.paths import Paths, paths_options
from netboot.cli.places import Access, access_options, check_authority, open_registries, retry

_WAIT_SECONDS = 60.0
"""How long a command waits for another writer of the store: a replica may be taking over an image of the same name."""


@click.command()
@click.argument("image", shell_complete=complete.images)
@click.argument("place", metavar="REGISTRY/REPOSITORY[:TAG]")
@access_options
@paths_options()
@output_option
def push(image: str, place: str, paths: Paths, access: Access, output: str) -> None:
    """Upload IMAGE into an OCI registry, under TAG (latest, where none is given) and under its own digest.

    The image must be signed by a key that this site trusts. What the registry has already is not sent again, and the
    tag moves last. The login is docker's own (`docker login`), or --username with the password on standard input.

    \b
    Example:
      netboot image push debian-12-minimal registry.example:5000/netboot/images:candidate
      netboot image push 4c1d22e0 localhost:5000/netboot/images --output json
    """
    from images.registry.push import absent, publishable
    from images.registry.push import push as upload

    reference, tries = read_reference(place), retry()
    if reference.digest is not None:
        raise click.UsageError(
            "a push names a tag: write REGISTRY/REPOSITORY:TAG, for the digest follows from what is pushed"
        )
    opened = Store(paths.store)
    digest = resolve(opened, image)
    manifest = publishable(opened, digest, KeyRing(paths.keys).trusted())
    with open_registries(access, reference) as [registry]:
        blobs = absent(registry, manifest, tries)
        with progress(f"pushing {digest[:12]}", sum(blob.size for blob in blobs.values())) as advance:
            done = upload(opened, manifest, registry, reference.tag, blobs, tries, advance)
    value = {"image": digest, "place": str(reference), "digest": done.digest, "tags": list(done.tags)}
    summary = f"image {digest[:12]} is {reference} now, {reference.place}@{done.digest}; {_mib(done.sent)} sent"
    show(output, {**value, "sent": done.sent}, (), (), summary)


@click.command()
@click.argument("place", metavar="REGISTRY/REPOSITORY[:TAG|@DIGEST] or URL")
@access_options
@paths_options(made=True)
@output_option
def pull(place: str, paths: Paths, access: Access, output: str) -> None:
    """Fetch an image into the store, from an OCI registry or from the URL of an image at a plain origin.

    TAG may be an image's own digest; @DIGEST is the registry's, sha256:…. First the signature must be of a key that
    this site trusts, then every byte must be what was signed: only then is the image in the store. Blobs that the store
    has are not fetched again. Interrupted or failed, it leaves nothing.

    \b
    Example:
      netboot image pull registry.example:5000/netboot/images:stable
      netboot image pull http://cache.example:8000/v1/images/DIGEST
    """
    if is_url(place):
        if access.username is not None or access.credentials is not None:
            raise click.UsageError(
                "a plain origin takes no login: leave it out, what it serves is signed, and no secret"
            )
        origin, digest = read_origin(place)
        if digest is None:
            raise click.UsageError(f"{place} names no image: give the whole URL, which ends in /images/DIGEST")
        check_authority(access.authority)
        source = OriginSource(origin, authority=access.authority)
        try:
            value = _take(source, digest, paths)
        finally:
            source.close()
    else:
        reference = read_reference(place)
        paths.check()
        with open_registries(access, reference) as [registry]:
            value = _take(RegistrySource(registry), reference.name, paths)
    show(output, value, (), (), _taken(value))


@click.command()
@click.argument("image", metavar="FROM", shell_complete=complete.images)
@click.argument("place", metavar="REGISTRY/REPOSITORY:TAG")
@access_options
@paths_options()
@output_option
def promote(image: str, place: str, paths: Paths, access: Access, output: str) -> None:
    """Let TAG of a registry name an image that is there already: FROM. No bytes move.

    FROM is another REGISTRY/REPOSITORY:TAG of the same registry (also of another repository), the digest of an image
    that was pushed into this repository, or what names an image of the local store. Its signature must be of a key that
    this site trusts, and each of its blobs must be there with its size; else nothing changes.

    \b
    Example:
      netboot image promote registry.example:5000/netboot/images:candidate registry.example:5000/netboot/images:stable
      netboot image promote debian-12-minimal registry.example:5000/netboot/images:stable
    """
    from images.registry.push import promote as move

    target = read_reference(place)
    if target.digest is not None:
        raise click.UsageError("what is moved is a tag: write REGISTRY/REPOSITORY:TAG")
    source = read_reference(image) if "/" in image else target.tagged(_digest(paths, image))
    trusted = KeyRing(paths.keys).trusted()
    with open_registries(access, source, target) as [there, here]:
        done = move(there, source.name, here, target.tag, trusted, retry())
    value = {"image": done.image, "place": str(target), "digest": done.digest, "before": done.before}
    before = f"; it was {done.before[:12]}" if done.before and done.before != done.image else ""
    show(output, value, (), (), f"{target} is image {done.image[:12]} now{before}")


@click.command("export")
@click.argument("image", shell_complete=complete.images)
@click.argument("folder", type=NamedFolder(made=True))
@paths_options()
@output_option
def export_(image: str, folder: Path, paths: Paths, output: str) -> None:
    """Write IMAGE into FOLDER as a file server or a bucket serves it: blobs/SHA256, images/DIGEST/manifest.json, .sig.

    FOLDER mounted at /v1/ of any file server is an origin for machines, and a place to pull from. Files that are there,
    whole, stay; the manifest is written last.

    \b
    Example:
      netboot image export debian-12-minimal /srv/netboot
    """
    from images.registry.folder import export

    opened = Store(paths.store)
    digest = resolve(opened, image)
    with progress(f"exporting {digest[:12]}", opened.image(digest).size) as advance:
        written = export(opened, digest, folder, KeyRing(paths.keys).trusted(), advance)
    value = {"image": digest, "folder": str(folder), "written": written}
    show(output, value, (), (), f"image {digest[:12]} is in {folder}; {_mib(written)} written")


@click.command("import")
@click.argument("folder", type=NamedFolder())
@click.argument("digest", required=False)
@paths_options(made=True)
@output_option
def import_(folder: Path, digest: str | None, paths: Paths, output: str) -> None:
    """Take the images of FOLDER (or the one of DIGEST) into the store, each verified as `pull` verifies.

    \b
    Example:
      netboot image import /media/stick/netboot
    """
    source = FolderSource(folder)
    values = [_take(source, name, paths) for name in ([digest] if digest else source.digests())]
    show(output, {"images": values}, (), (), "\n".join(map(_taken, values)))


def _take(source: Source, name: str, paths: Paths) -> dict[str, Any]:
    from images.registry.pull import announce, missing
    from images.registry.pull import pull as fetch

    store, tries = Store(paths.store, wait=_WAIT_SECONDS), retry()
    image = announce(source, name, KeyRing(paths.keys).trusted(), tries)
    blobs = missing(store, image.manifest)
    with progress(f"pulling {image.digest[:12]}", sum(blob.size for blob in blobs.values())) as advance:
        fetched = fetch(source, image, store, blobs, tries, advance)
    return {
        "image": image.digest,
        "name": image.manifest.name,
        "architecture": image.manifest.architecture,
        "from": source.where,
        "signer": image.signer,
        "fetched": fetched,
    }


def _taken(value: dict[str, Any]) -> str:
    return (
        f"image {value['image'][:12]} ({value['name']}, {value['architecture']}) is in the store: "
        f"signed by key {value['signer']}, every byte verified; {_mib(value['fetched'])} fetched"
    )


def _digest(paths: Paths, image: str) -> str:
    """An image's digest: of the local store's names, or given whole."""
    try:
        return resolve(Store(paths.store), image)
    except NotFoundError:
        if is_digest(image):
            return image
        raise


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"
