"""`netboot key`: the keys that sign images and site bundles. Works on local files."""

import dataclasses
from pathlib import Path
from time import localtime, strftime

import click

from images.keyring import KeyInfo, KeyRing
from netboot.cli.output import output_option, show
from netboot.cli.paths import config_option, find_paths, keys_option


@click.group()
def group() -> None:
    """List, create, rotate and retire signing keys.

    Images carry the public keys that were trusted when they were built, so a new key is trusted by machines only from
    the next image on: rotate, build, move the channels, and retire the old key last.
    """


def _ring(config: Path | None, keys: Path | None) -> KeyRing:
    return KeyRing(keys or find_paths(config, None, None).keys)


@group.command("list")
@config_option
@keys_option
@output_option
def list_(config: Path | None, keys: Path | None, output: str) -> None:
    """List the keys, oldest first."""
    infos = _ring(config, keys).infos()
    rows = [(info.id, _state(info), strftime("%Y-%m-%d %H:%M", localtime(info.created))) for info in infos]
    empty = "no keys yet: `netboot key create` makes one"
    show(output, [dataclasses.asdict(info) for info in infos], ("key", "state", "created"), rows, empty)


@group.command()
@config_option
@keys_option
def create(config: Path | None, keys: Path | None) -> None:
    """Create the first key of a site."""
    ring = _ring(config, keys)
    click.echo(
        f"created key {ring.create().id} in {ring.folder}; back up its private half (.key) and show it to nobody"
    )


@group.command()
@config_option
@keys_option
def rotate(config: Path | None, keys: Path | None) -> None:
    """Create a new key that signs from now on; the old one stays trusted until it is retired."""
    new = _ring(config, keys).rotate()
    click.echo(
        f"key {new.id} signs from now on\n"
        "next: sign the site bundle again (`netboot config bundle`), build images that trust the new key, move the\n"
        "channels to them, and retire the old key (`netboot key retire`) when nothing boots what it signed"
    )


@group.command()
@click.argument("key")
@config_option
@keys_option
def retire(key: str, config: Path | None, keys: Path | None) -> None:
    """Trust KEY no longer: images that only it signed cannot be served any more."""
    _ring(config, keys).retire(key)
    click.echo(f"key {key} is not trusted any more")


@group.command()
@click.argument("key")
@config_option
@keys_option
def export(key: str, config: Path | None, keys: Path | None) -> None:
    """Print the public half of KEY, as signify reads it.

    \b
    Check an image by hand:
      netboot key export KEY > site.pub
      signify-openbsd -V -p site.pub -x manifest.sig -m manifest.json
    """
    click.echo(_ring(config, keys).public_bytes(key).decode(), nl=False)


def _state(info: KeyInfo) -> str:
    words = ["signs" if info.active else "", "trusted" if info.trusted else "retired"]
    return ", ".join([word for word in words if word] + ([] if info.private else ["public half only"]))
