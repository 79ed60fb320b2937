"""`netboot key`: the keys that sign images and site bundles, and those that seal join's state. Works on local files."""

import dataclasses
from pathlib import Path
from time import localtime, strftime

import click

from images.artifact.keyring import KeyInfo, KeyRing
from netboot.cli import sealing
from netboot.cli.output import output_option, show
from netboot.cli.paths import config_option, find_paths, keys_option


@click.group()
def group() -> None:
    """List, create, rotate and retire signing keys.

    Images carry the public keys that were trusted when they were built, so a new key is trusted by machines only from
    the next image on: rotate, build, move the channels, and retire the old key last.

    \b
    Example:
      netboot key list
      netboot key rotate
      netboot image build debian-12-minimal
      netboot channel set stable debian-12-minimal
      netboot key retire 5f2c41d09be7a688
    """


def _ring(config: Path | None, keys: Path | None) -> KeyRing:
    return KeyRing(keys or find_paths(config, None, None).keys)


@group.command("list")
@config_option
@keys_option
@output_option
def list_(config: Path | None, keys: Path | None, output: str) -> None:
    """List the keys, oldest first: which one signs, which are trusted, whose private half is here.

    \b
    Example:  netboot key list --keys /etc/netboot/keys
    """
    infos = _ring(config, keys).infos()
    rows = [(info.id, _state(info), strftime("%Y-%m-%d %H:%M", localtime(info.created))) for info in infos]
    empty = "no keys yet: `netboot key create` makes one"
    show(output, [dataclasses.asdict(info) for info in infos], ("key", "state", "created"), rows, empty)


@group.command()
@config_option
@keys_option
@output_option
def create(config: Path | None, keys: Path | None, output: str) -> None:
    """Create the first key of a site.

    The service needs only the public half (.pub): images can be signed on another machine, where the private half
    (.key) stays.

    \b
    Example:  netboot key create --keys ./keys
    """
    ring = _ring(config, keys)
    info = ring.create()
    said = f"created key {info.id} in {ring.folder}; back up its private half (.key) and show it to nobody"
    show(output, dataclasses.asdict(info), (), (), said)


@group.command()
@config_option
@keys_option
@output_option
def rotate(config: Path | None, keys: Path | None, output: str) -> None:
    """Create a new key that signs from now on; the old one stays trusted until it is retired.

    \b
    Example:  netboot key rotate
    """
    new = _ring(config, keys).rotate()
    said = (
        f"key {new.id} signs from now on\n"
        "next, in this order: build images, which trust both keys (`netboot image build`); move the channels to them;\n"
        "sign the site bundle again (`netboot config bundle`: both keys sign); older images that are to be served on\n"
        "get the new signature by `netboot image sign`; retire the old key (`netboot key retire`) last"
    )
    show(output, dataclasses.asdict(new), (), (), said)


@group.command()
@click.argument("key")
@config_option
@keys_option
@output_option
def retire(key: str, config: Path | None, keys: Path | None, output: str) -> None:
    """Trust KEY no longer: images that only it signed cannot be served any more.

    \b
    Example:  netboot key retire 5f2c41d09be7a688
    """
    _ring(config, keys).retire(key)
    show(output, {"retired": key}, (), (), f"key {key} is not trusted any more")


@group.command()
@click.argument("key")
@config_option
@keys_option
@output_option
def export(key: str, config: Path | None, keys: Path | None, output: str) -> None:
    """Print the public half of KEY, as signify reads it.

    \b
    Check an image by hand:
      netboot key export KEY > site.pub
      signify-openbsd -V -p site.pub -x manifest.sig -m manifest.json
    """
    text = _ring(config, keys).public_bytes(key).decode()
    show(output, {"id": key, "public_key": text}, (), (), text.rstrip("\n"))


group.add_command(sealing.sealing, "sealing")
group.add_command(sealing.nonces, "nonces")


def _state(info: KeyInfo) -> str:
    words = ["signs" if info.active else "", "trusted" if info.trusted else "retired"]
    return ", ".join([word for word in words if word] + ([] if info.private else ["public half only"]))
