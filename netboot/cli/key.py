"""`netboot key`: the keys that sign images and site bundles, and those that seal join's state. Works on local files."""

import dataclasses
from contextlib import AbstractContextManager
from typing import Any

import click

from images.artifact.keyring import KeyInfo, KeyRing
from images.errors import NotFoundError, StoreError
from images.values.strict import FaultsError
from netboot.cli import complete, file_acts, proof_keys, sealing
from netboot.cli.dry_run import local_dry_run_option
from netboot.cli.outcomes import CANNOT_TELL, NOT_ALLOWED, ApiError
from netboot.cli.output import output_option, show
from netboot.cli.paths import Paths, paths_options
from netboot.cli.retiring import Ends, ends_with
from netboot.cli.times import moment
from netboot.clock import rfc3339


@click.group()
def group() -> None:
    """List, create, rotate, retire and restore signing keys.

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


@group.command("list")
@paths_options(store=False)
@output_option
def list_(paths: Paths, output: str) -> None:
    """List the keys, oldest first: which one signs, which are trusted, whose private half is here.

    \b
    Example:  netboot key list --keys /etc/netboot/keys
    """
    infos = KeyRing(paths.keys).infos()
    rows = [(info.id, _state(info), moment(int(info.created * 1000))) for info in infos]
    empty = "no keys yet: `netboot key create` makes one"
    value, names = {"keys": [_facts(info) for info in infos]}, [info.id for info in infos]
    show(output, value, ("key", "state", "created"), rows, empty, names=names)


@group.command()
@paths_options(store=False, made=True)
@output_option
def create(paths: Paths, output: str) -> None:
    """Create the first key of a site.

    The service needs only the public half (.pub): images can be signed on another machine, where the private half
    (.key) stays.

    \b
    Example:  netboot key create --keys ./keys
    """
    ring = KeyRing(paths.keys)
    with _recorded(paths, "key-create", ring):
        info = ring.create()
    summary = f"created key {info.id} in {ring.folder}; back up its private half (.key) and show it to nobody"
    show(output, _facts(info), (), (), summary)


@group.command()
@local_dry_run_option
@paths_options(store=False)
@output_option
def rotate(dry_run: bool, paths: Paths, output: str) -> None:
    """Create a new key that signs from now on; the old one stays trusted until it is retired.

    Keys for other things are rotated by groups of their own: `netboot key proofs`, `sealing`, `nonces`.

    \b
    Example:  netboot key rotate
    """
    ring = KeyRing(paths.keys)
    if dry_run:
        ring.require_writable()
        signs = next((info.id for info in ring.infos() if info.active), None)
        stays = f", and key {signs} would stay trusted" if signs is not None else ""
        value = {"dry_run": True, "signs_now": signs}
        show(output, value, (), (), f"a new key in {ring.folder} would sign from then on{stays}")
        return
    with _recorded(paths, "key-rotate", ring):
        new = ring.rotate()
    summary = (
        f"key {new.id} signs from now on\n"
        "next, in this order: build images, which trust both keys (`netboot image build`); move the channels to them;\n"
        "sign the site bundle again (`netboot config bundle`: both keys sign); older images that are to be served on\n"
        "get the new signature by `netboot image sign`; retire the old key (`netboot key retire`) last"
    )
    show(output, _facts(new), (), (), summary)


@group.command()
@click.argument("key", shell_complete=complete.keys)
@click.option("--force", is_flag=True, help="Also where it ends boots, which the answer names.")
@local_dry_run_option
@paths_options()
@output_option
def retire(key: str, force: bool, dry_run: bool, paths: Paths, output: str) -> None:
    """Trust KEY no longer: images that only it signed cannot be served any more.

    Refused (exit status 4) where machines boot such an image, or the site bundle is signed by it alone: it says whose
    boots that would end; and where no site is named that could tell. Where the inventory has faults, nobody can tell
    (exit status 5). `netboot key restore` takes it back.

    \b
    Example:
      netboot key retire 5f2c41d09be7a688 --dry-run
      netboot key retire 5f2c41d09be7a688
    """
    ring = KeyRing(paths.keys)
    ring.require_retirable(key)
    ends = _ends(key, ring, paths, force=force)
    lines = "".join(f"\n  {line}" for line in ends.lines())
    if ends.untold and not force:
        known = f"; as far as is known, it alone signed:{lines}" if lines else ""
        raise ApiError(
            f"cannot tell whose boots end with key {key}: {ends.untold}{known}",
            "`netboot config check` lists the faults: correct them first, or say --force",
            CANNOT_TELL,
        )
    if ends.lines() and not force:
        raise ApiError(
            f"key {key} alone signed:{lines}",
            "sign these by the new key first (`netboot image sign IMAGE`, `netboot config bundle`), or say --force",
            NOT_ALLOWED,
        )
    ended = {"ended": [each._asdict() for each in ends.images], "bundle": ends.bundle} if lines else {}
    if dry_run:
        ring.require_writable()
    else:
        with _recorded(paths, "key-retire", ring, key, **ended):
            ring.retire(key)
    so = "would not be trusted any more" if dry_run else "is not trusted any more"
    back = f"; `netboot key restore {key}` takes that back. It alone signed:{lines}" if lines else ""
    if ends.untold:
        click.echo(f"cannot tell whose boots end by that: {ends.untold}", err=True)
    value = {"retired": key} | ended | ({"dry_run": True} if dry_run else {})
    show(output, value, (), (), f"key {key} {so}{back}")


def _ends(key: str, ring: KeyRing, paths: Paths, *, force: bool) -> Ends:
    try:
        return ends_with(key, ring, paths)
    except NotFoundError as error:  # where keys alone are kept
        if not force:
            remedy = "give --config of the site whose images it signed; where keys alone are kept, say --force"
            raise ApiError(f"whose boots that ends cannot be judged: {error}", remedy, NOT_ALLOWED) from None
        why: Exception = error
    except (StoreError, FaultsError) as error:
        if not force:
            raise
        why = error
    click.echo(f"not judged whose boots that ends: {why}", err=True)
    return Ends()


@group.command()
@click.argument("key", shell_complete=complete.keys)
@local_dry_run_option
@paths_options(store=False)
@output_option
def restore(key: str, dry_run: bool, paths: Paths, output: str) -> None:
    """Trust KEY again, which was retired: what it signed can be served again.

    \b
    Example:  netboot key restore 5f2c41d09be7a688
    """
    ring = KeyRing(paths.keys)
    if dry_run:
        ring.restore(key, dry_run=True)
        ring.require_writable()
        show(output, {"restored": key, "dry_run": True}, (), (), f"key {key} would be trusted again")
        return
    with _recorded(paths, "key-restore", ring, key):
        ring.restore(key)
    show(output, {"restored": key}, (), (), f"key {key} is trusted again; the service takes it by itself")


@group.command()
@click.argument("key", shell_complete=complete.keys)
@paths_options(store=False)
@output_option
def export(key: str, paths: Paths, output: str) -> None:
    """Print the public half of KEY, as signify reads it.

    \b
    Check an image by hand:
      netboot key export KEY > site.pub
      signify-openbsd -V -p site.pub -x manifest.sig -m manifest.json
    """
    text = KeyRing(paths.keys).public_bytes(key).decode()
    show(output, {"id": key, "public_key": text}, (), (), text.rstrip("\n"))


group.add_command(sealing.sealing, "sealing")
group.add_command(sealing.nonces, "nonces")
group.add_command(proof_keys.proofs, "proofs")


def _facts(info: KeyInfo) -> dict[str, Any]:
    facts = dataclasses.asdict(info)
    return facts | {"created_at": rfc3339(int(facts.pop("created") * 1000))}


def _recorded(
    paths: Paths, act: str, ring: KeyRing, key: str | None = None, **more: object
) -> AbstractContextManager[None]:
    """Around an act, in the audit of the site whose keys they are. `key`: that it concerns; None: the one that signs.
    Of a retired key: what ended with it."""

    def stands() -> file_acts.Stood:
        info = next((info for info in ring.infos() if (info.active if key is None else info.id == key)), None)
        state = "signs" if info and info.active else "trusted" if info and info.trusted else "retired"
        return None if info is None else {"key": info.id, "state": state}

    def write(before: file_acts.Stood, after: file_acts.Stood, result: str) -> None:
        facts = {"key": (after or {}).get("key", key), **more}
        file_acts.record_of(paths, "keys", act, facts, before=before, after=after, result=result)

    return file_acts.recorded(stands, write)


def _state(info: KeyInfo) -> str:
    states = ["signs" if info.active else "", "trusted" if info.trusted else "retired"]
    return ", ".join([state for state in states if state] + ([] if info.private else ["public half only"]))
