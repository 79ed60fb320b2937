"""`netboot key sealing|nonces`: the keys under which join's state, and nonces of boot windows, travel through machines.

Both work on a local file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from images.values import files, flock
from netboot.cli.file_acts import Stood, record, recorded
from netboot.cli.outcomes import cannot
from netboot.cli.output import output_option, show
from netboot.cli.paths import config_option, find_config
from netboot.config import Config, Join
from netboot.stores.sealing import (
    NONCES,
    SEALING,
    Kind,
    SealingKeysError,
    added,
    new_key,
    promoted,
    read_keys,
    retired,
    write_keys,
)
from tokens.sealed import Keyset


@click.group()
def sealing() -> None:
    """List and rotate the keys that join's replicas share.

    A state lives two minutes. So that none is lost, a key is rotated in three steps; after each one carry the file
    (join.sealing_keys, mode 0600) to every replica, which reads it by itself. With one service they may follow at once.

    \b
      netboot key sealing rotate             a new key opens, and does not seal yet
      netboot key sealing rotate --promote   it seals
      netboot key sealing rotate --retire    three minutes later: the others go
    """


@click.group()
def nonces() -> None:
    """List and rotate the keys that seal nonces of boot windows (join.nonce_keys, mode 0600).

    A nonce lives ten minutes. A key is rotated in three steps like those of `netboot key sealing`:

    \b
      netboot key nonces rotate             a new key opens, and does not seal yet
      netboot key nonces rotate --promote   it seals
      netboot key nonces rotate --retire    eleven minutes later: the others go
    """


_LIST = """List the keys by their ids, which tell nothing of them: the first seals, all open.

\b
  netboot key {0} list
  netboot key {0} list --output json
"""
_ROTATE = """Add a new key that opens, or (--promote, --retire) take the next step with those that are there.

\b
  netboot key {0} rotate
  netboot key {0} rotate --promote
"""


def _fill(group: click.Group, kind: Kind, path_in: Callable[[Join], Path]) -> None:
    """Give `group` its commands, which work on the file that `path_in` finds."""

    def path_of(settings: Config) -> Path:
        if settings.join is None:
            why = "netboot.yaml has no `join` section, so there is nothing to seal"
            raise click.ClickException(f"{why}: add it first (docs/kubernetes.md)")
        return path_in(settings.join)

    @group.command("list", help=_LIST.format(kind.group))
    @config_option
    @output_option
    def list_(config: Path | None, output: str) -> None:
        _show(output, read_keys(path_of(find_config(config)), kind))

    @group.command("rotate", help=_ROTATE.format(kind.group))
    @click.option("--promote", is_flag=True, help="The newest key seals from now on.")
    @click.option("--retire", is_flag=True, help="All keys but the one that seals go.")
    @config_option
    @output_option
    def rotate(promote: bool, retire: bool, config: Path | None, output: str) -> None:
        if promote and retire:
            raise click.UsageError(
                "one step at a time: give --retire when what --promote wrote has reached every replica"
            )
        settings = find_config(config)
        if settings.keys_kubernetes is not None:
            raise click.ClickException(
                f"the {kind.name} of this site are those of a Secret (keys_kubernetes): "
                f"`netboot cluster keys rotate {kind.group}` changes them for all replicas"
            )
        path, step = path_of(settings), "promote" if promote else "retire" if retire else "rotate"
        if step == "rotate":
            path.parent.mkdir(parents=True, exist_ok=True)

        def write(before: Stood, after: Stood, result: str) -> None:
            gone = [key for key in (before or {}).get("opens", ()) if key not in (after or {}).get("opens", ())]
            facts = {"retired": gone} if retire else {}
            record(settings.data, f"key-{kind.group}-{step}", facts, before=before, after=after, result=result)

        try:
            with flock.folder(path.parent), recorded(lambda: _stands(path, kind), write):
                keys = _rotated(path, kind, promote=promote, retire=retire)
        except OSError as error:
            raise cannot(f"cannot write {path}", error) from None
        _show(output, keys)


_fill(sealing, SEALING, lambda join: join.sealing_keys)
_fill(nonces, NONCES, lambda join: join.nonce_keys)


def _rotated(path: Path, kind: Kind, *, promote: bool, retire: bool) -> Keyset:
    if files.look(path) is None and not (promote or retire):
        keys = Keyset((new_key(),))
    else:
        keys = read_keys(path, kind)
        if promote and len(keys.keys) == 1:
            raise click.ClickException(
                f"there is one key, and it seals: `netboot key {kind.group} rotate` adds another"
            )
        keys = promoted(keys) if promote else retired(keys) if retire else added(keys, new_key())
    write_keys(path, keys, kind)
    return keys


def _stands(path: Path, kind: Kind) -> Stood:
    """What the file has, by ids; None: no keys that could be used."""
    try:
        opens = [key.id.hex() for key in read_keys(path, kind).keys]
    except SealingKeysError:
        return None
    return {"seals": opens[0], "opens": opens}


def _show(output: str, keys: Keyset) -> None:
    value: list[dict[str, Any]] = [
        {"id": key.id.hex(), "seals": not number, "opens": True} for number, key in enumerate(keys.keys)
    ]
    rows = [(key["id"], "seals, opens" if key["seals"] else "opens") for key in value]
    show(output, {"keys": value}, ("key", "does"), rows, names=[row[0] for row in rows])
