"""`netboot cluster keys`: the Secret with the keys that replicas share (`keys_kubernetes`), for people."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import click

from netboot.cli import keys_secret
from netboot.cli.dry_run import local_dry_run_option
from netboot.cli.file_acts import record
from netboot.cli.forms import Output
from netboot.cli.given_files import NamedFile
from netboot.cli.outcomes import CANNOT_TELL, ApiError
from netboot.cli.output import output_option, show
from netboot.cli.paths import config_file, config_option, find_config
from netboot.cli.times import ago
from netboot.clock import moment_ms, rfc3339

if TYPE_CHECKING:
    from netboot.lifecycle.shared_keys import InUse
    from tokens.sealed import Keyset

_NAMES = {"sealing": "sealing.keys", "nonces": "nonce.keys"}
"""Keysets by the words of commands, and as the Secret has them."""
_ADMIN = "Kubeconfig of who may read and write that Secret; used now, and not kept."
_RIGHT = "delete the Secret, and `netboot cluster keys push --in-use` makes it as a replica had it"


@click.group("keys")
def group() -> None:
    """Keys that replicas share by a Secret (`keys_kubernetes`): make it, look at it, rotate its keys.

    \b
    Once, on the host whose files have the keys:
      netboot cluster manifests --keys | kubectl apply -f -
      netboot cluster kubeconfigs --keys --admin-kubeconfig ~/.kube/config
      netboot cluster keys push --admin-kubeconfig ~/.kube/config
    """


@group.command()
@config_option
@click.option("--admin-kubeconfig", type=NamedFile(), help=f"{_ADMIN}  [default: print the Secret]")
@click.option("--in-use", is_flag=True, help="Of what this replica has of the Secret, where that was lost or damaged.")
def push(config: Path | None, admin_kubeconfig: Path | None, in_use: bool) -> None:
    """Make the Secret of this site's own files: what `join.sealing_keys`, `join.nonce_keys` and `boot_id_key` name.

    Once keys were rotated those files are of before: --in-use makes it again as this replica had it last.

    Without --admin-kubeconfig it is printed as YAML, for a pipe alone, for it holds keys. A Secret that is there
    already is not changed: with the same keys all is done, with others nothing is.

    \b
      netboot cluster keys push --admin-kubeconfig ~/.kube/config
      netboot cluster keys push | kubectl create -f -
    """
    from netboot.config import load_config
    from netboot.kube.shared_keys_admin import manifest
    from netboot.stores.shared_keys import ids_of

    settings = load_config(config_file(config), shared=in_use)
    place, contents = keys_secret.place_of(settings), keys_secret.own_files(settings)
    ids, where = ids_of(contents, "this site's files").of, keys_secret.where_of(place)
    after = {name: list(keys) for name, keys in ids.items()}
    if admin_kubeconfig is None:
        if not keys_secret.piped():
            raise click.UsageError(
                "it holds keys, for a pipe alone, no terminal and no file: pipe it, or give --admin-kubeconfig"
            )
        record(settings.data, "cluster-keys-push", {"secret": where, "printed": True}, after=after)
        click.echo(Output("yaml").line(manifest(place.namespace, place.secret, contents), None))
        return
    with keys_secret.opened(place, admin_kubeconfig) as secret:
        if not secret.create(contents):
            there = keys_secret.ids_in(place, secret.read().data)
            if there.of != ids:
                raise click.ClickException(
                    f"{where} has other keys than this host's files, and was not changed: `netboot cluster keys "
                    "rotate` changes keys; to replace them all, delete it first"
                )
            click.echo(f"{where} has these keys already")
            return
    record(settings.data, "cluster-keys-push", {"secret": where}, after=after)
    click.echo(f"made {where}; `netboot cluster keys show` has what is in it")


@group.command("show")
@config_option
@click.option("--admin-kubeconfig", type=NamedFile(), help="Kubeconfig to ask by.  [default: that of keys_kubernetes]")
@output_option
def show_(config: Path | None, admin_kubeconfig: Path | None, output: str) -> None:
    """Show the keys by their ids, which tell nothing of them, and which replicas have them in use.

    \b
      netboot cluster keys show
      netboot cluster keys show --output json
    """
    place = keys_secret.place_of(find_config(config))
    with keys_secret.opened(place, admin_kubeconfig or place.kubeconfig) as secret:
        seen, replicas = secret.read(), secret.replicas()
    ids = keys_secret.ids_in(place, seen.data)
    keys: list[dict[str, Any]] = [
        {
            "name": name,
            "id": key,
            "does": "names boots" if name not in _NAMES.values() else "opens" if number else "seals, opens",
            "made": seen.made.get(key) or None,
            "replicas": [replica for replica, said in sorted(replicas.items()) if key in _has(said, name)],
        }
        for name, there in ids.of.items()
        for number, key in enumerate(there)
    ]
    said = [{"name": replica, **one.model_dump(mode="json")} for replica, one in sorted(replicas.items())]
    rows = [
        (each["name"], each["id"], each["does"], ago(each["made"] or None), ", ".join(each["replicas"]) or "none")
        for each in keys
    ]
    value: dict[str, Any] = {"secret": f"{place.namespace}/{place.secret}", "keys": keys, "replicas": said}
    show(output, value, ("keys", "key", "does", "made", "replicas"), rows, names=[row[1] for row in rows])


@group.command()
@click.argument("keys", type=click.Choice(sorted(_NAMES)))
@click.option("--promote", is_flag=True, help="The newest key seals from now on.")
@click.option("--retire", is_flag=True, help="All keys but the one that seals go.")
@click.option("--without", multiple=True, metavar="REPLICA", help="Do not wait for this one, and forget what it said.")
@click.option("--admin-kubeconfig", type=NamedFile(), required=True, help=_ADMIN)
@local_dry_run_option
@config_option
def rotate(
    keys: str,
    promote: bool,
    retire: bool,
    without: tuple[str, ...],
    admin_kubeconfig: Path,
    dry_run: bool,
    config: Path | None,
) -> None:
    """Add a new key that opens, or (--promote, --retire) take the next step with those that are there.

    A step is done only when every replica has said that it has what the step before wrote, and --retire when nothing is
    under way any more that another key sealed: three minutes after --promote, and eleven for nonces. Else nothing is
    done, and who is waited for is named. The key of boot ids cannot be rotated.

    \b
      netboot cluster keys rotate sealing --admin-kubeconfig ~/.kube/config
      netboot cluster keys rotate sealing --promote --admin-kubeconfig ~/.kube/config
      netboot cluster keys rotate sealing --retire --admin-kubeconfig ~/.kube/config
    """
    from netboot.stores.sealing import NONCES, SEALING, parsed, text_of
    from netboot.stores.shared_keys import contents

    if promote and retire:
        raise click.UsageError("one step at a time: give --retire when all replicas seal by what --promote wrote")
    settings, step = find_config(config), "promote" if promote else "retire" if retire else "rotate"
    place, name, kind = keys_secret.place_of(settings), _NAMES[keys], SEALING if keys == "sealing" else NONCES
    where = keys_secret.where_of(place)
    with keys_secret.opened(place, admin_kubeconfig) as secret:
        seen = secret.read()
        before = parsed(contents(seen.data, (name,), where)[name], kind, f"{name} of {where}", _RIGHT)
        if step == "promote" and _seals_already(before, seen.made):
            click.echo(f"{before.keys[0].id.hex()} is the newest key and seals already: nothing was done")
            return
        replicas = {replica: said for replica, said in secret.replicas().items() if replica not in without}
        after = _after(before, name, step, replicas)
        was, now = ([key.id.hex() for key in each.keys] for each in (before, after))
        if dry_run:
            click.echo(f"would be done: {'a new key opens' if step == 'rotate' else _words(was, now)}")
            return
        made = {key: at for key, at in seen.made.items() if key not in was or key in now}
        made |= {key: _later_than(made.values()) for key in now if key not in was}
        secret.change(seen, {name: text_of(after, kind)}, {*seen.retired, *was} - {*now}, made)
        facts = {"secret": where, "without": list(without)}
        record(settings.data, f"cluster-keys-{keys}-{step}", facts, before={"opens": was}, after={"opens": now})
        for replica in without:
            secret.forget(replica)
    click.echo(_words(was, now))


def _seals_already(keys: "Keyset", made: Mapping[str, str]) -> bool:
    """Whether the key that seals was made after all others, so that there is nothing to promote."""
    first, *others = (made.get(key.id.hex(), "") for key in keys.keys)
    return bool(others) and first > max(others)


def _later_than(moments: Iterable[str]) -> str:
    """Now, or a second after these where a clock is behind: by when keys were made it is known which is the newest."""
    latest = 0
    for moment in moments:
        with suppress(ValueError):
            latest = max(latest, moment_ms(moment))
    return rfc3339(max(round(time() * 1000), latest + 1000), "seconds")


def _after(before: "Keyset", name: str, step: str, replicas: Mapping[str, "InUse"]) -> "Keyset":
    """The keyset after a step.

    Raises:
        ApiError: replicas are not as far, or nobody can tell. click.ClickException: there is nothing to promote.
    """
    from netboot.lifecycle.shared_keys import not_learnt, still_needed
    from netboot.stores.sealing import added, new_key, promoted, retired

    if step == "rotate":
        return added(before, new_key())
    if step == "promote" and len(before.keys) == 1:
        raise click.ClickException("there is one key, and it seals: run the same without --promote, which adds another")
    if step == "retire" and len(before.keys) == 1:
        words = "there is one key, and it seals: none is to go; run the same without --retire to add another"
        raise click.ClickException(words)
    newest, seals = before.keys[-1].id.hex(), before.keys[0].id.hex()
    waits = not_learnt(replicas, name, newest) if step == "promote" else still_needed(replicas, name, seals)
    if not replicas:
        waits = ["no replica has said which keys it has"]
    if waits:
        remedy = (
            "wait, and give the command again; of one that should have it by now, `keys` of `netboot doctor` there "
            "says why it has not; of one that is gone for good: --without NAME"
        )
        raise ApiError("nothing was done:\n" + "\n".join(waits), remedy, CANNOT_TELL)
    return promoted(before) if step == "promote" else retired(before)


def _words(was: list[str], now: list[str]) -> str:
    """What a step does, by ids."""
    gone = [key for key in was if key not in now]
    more = f"; {', '.join(gone)} went" if gone else ""
    return f"{now[0]} seals; {', '.join(now)} open{more}"


def _has(said: "InUse", name: str) -> tuple[str, ...]:
    return said.keys(name) if name in _NAMES.values() else (said.boot_ids,)
