"""`netboot key sealing`: the keys under which join's state travels through the machine. Works on a local file."""

from pathlib import Path
from typing import Any

import click

from netboot.cli.output import output_option, show
from netboot.cli.paths import config_option, find_config
from netboot.stores.sealing import added, new_key, promoted, read_keys, retired, write_keys
from tokens.sealed import Keyset


@click.group()
def group() -> None:
    """List and rotate the keys that join's replicas share.

    A state lives two minutes. So that none is lost, a key is rotated in three steps; after each one carry the file
    (join.sealing_keys, mode 0600) to every replica, which reads it by itself. With one service they may follow at once.

    \b
      netboot key sealing rotate             a new key opens, and does not seal yet
      netboot key sealing rotate --promote   it seals
      netboot key sealing rotate --retire    three minutes later: the others go
    """


@group.command("list")
@config_option
@output_option
def list_(config: Path | None, output: str) -> None:
    """List the keys by their ids, which tell nothing of them: the first seals, all open.

    \b
      netboot key sealing list
      netboot key sealing list --output json
    """
    path = _path(config)
    _show(output, read_keys(path))


@group.command()
@click.option("--promote", is_flag=True, help="The newest key seals from now on.")
@click.option("--retire", is_flag=True, help="All keys but the one that seals go.")
@config_option
@output_option
def rotate(promote: bool, retire: bool, config: Path | None, output: str) -> None:
    """Add a new key that opens, or (--promote, --retire) take the next step with those that are there.

    \b
      netboot key sealing rotate
      netboot key sealing rotate --promote
    """
    path = _path(config)
    if promote and retire:
        raise click.UsageError("one step at a time: what --promote wrote must reach every replica before --retire")
    if not path.exists() and not (promote or retire):
        path.parent.mkdir(parents=True, exist_ok=True)
        keys = Keyset((new_key(),))
    else:
        keys = read_keys(path)
        if promote and len(keys.keys) == 1:
            raise click.ClickException("there is one key, and it seals: `netboot key sealing rotate` adds another")
        keys = promoted(keys) if promote else retired(keys) if retire else added(keys, new_key())
    write_keys(path, keys)
    _show(output, keys)


def _path(config: Path | None) -> Path:
    found = find_config(config)
    if found.join is None:
        raise click.ClickException("netboot.yaml has no `join` section: there is nothing to seal")
    return found.join.sealing_keys


def _show(output: str, keys: Keyset) -> None:
    value: list[dict[str, Any]] = [
        {"id": key.id.hex(), "seals": not number, "opens": True} for number, key in enumerate(keys.keys)
    ]
    rows = [(one["id"], "seals, opens" if one["seals"] else "opens") for one in value]
    show(output, value, ("key", "does"), rows)
