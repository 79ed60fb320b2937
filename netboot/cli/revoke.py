"""`netboot image revoke`, `unrevoke`, `revocations`: images that never boot or join again at this site."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from images.artifact.bundle import MOST_REVOKED
from images.errors import ImageError
from images.store import revocations
from images.store.lookup import resolve
from images.store.revocations import LONGEST_REASON, Revocation
from images.store.store import Store
from images.values.types import SHA256
from netboot.cli import bundles, complete
from netboot.cli.channel import preflight
from netboot.cli.client import NOT_ALLOWED, UNKNOWN, ApiError, Connection, api_command
from netboot.cli.dry_run import local_dry_run_option
from netboot.cli.moves import Move, count, current_tags, moved_to
from netboot.cli.outcomes import shown
from netboot.cli.output import image_digest, output_option, show
from netboot.cli.paths import config_option, find_config
from netboot.cli.times import moment
from netboot.client import ClientError
from netboot.clock import rfc3339
from netboot.config import Config

WAIT_SECONDS = 10.0
NAMES_SHOWN = 20


@click.command()
@click.argument("image", shell_complete=complete.images)
@click.option("--reason", required=True, help="Why: for people, no machine is told.")
@click.option("--replace-with", metavar="IMAGE", help="What channels that point to it are to point to.")
@local_dry_run_option
@click.option(
    "--force-nothing-boots", is_flag=True, help="Though machines have nothing to boot then, or none can tell."
)
@api_command
def revoke(
    image: str,
    *,
    reason: str,
    replace_with: str | None,
    dry_run: bool,
    force_nothing_boots: bool,
    connection: Connection,
    output: str,
) -> None:
    """Let IMAGE never boot or join again here: the next site bundle says so, signed with the key that is here.

    The service serves it to nobody, initrds refuse it, also in the middle of a boot, and join lets no boot of it in.
    Machines that run it go on until they are rebooted. A whole digest will do for an image that is not in the store.
    With machines that would boot it next, say what they are to boot: --replace-with moves its channels to another image
    at once, and ends rollouts that assigned it.

    \b
      netboot image revoke 4c1d22e0 --reason CVE-2026-1234 --dry-run
      netboot image revoke 4c1d22e0 --reason CVE-2026-1234 --replace-with debian-12-minimal
    """
    if replace_with is not None and force_nothing_boots:
        raise click.UsageError("--replace-with and --force-nothing-boots exclude each other: give one of them")
    if not 1 <= len(reason.strip()) <= LONGEST_REASON:
        raise click.UsageError(f"--reason: write 1 to {LONGEST_REASON} characters")
    settings = find_config(connection.config)
    store = Store(settings.store, wait=WAIT_SECONDS)
    digest = image if SHA256.fits(image) else resolve(store, image)
    _room(settings, digest)
    uses = _uses(connection, digest, force=force_nothing_boots)
    moves = _moves(settings, store, digest, uses, replace_with)
    tags = current_tags(connection, uses) if moves else {}
    refused = uses["boots"] and not moves and not force_nothing_boots
    if not refused:
        _require_fit(connection, output, moves)
    if dry_run:
        would = [f"channel {move.channel} would be image {move.image[:12]}" for move in moves]
        summary = "\n".join([*_said(uses), *would, "nothing was changed"])
        show(output, {**uses, "dry_run": True, "moves": dict(moves)}, (), (), summary)
    if refused:
        raise ApiError(
            "\n".join([*([] if dry_run else _said(uses)), "these machines would not boot, so nothing was changed"]),
            "say what they are to boot with --replace-with IMAGE, or --force-nothing-boots",
            NOT_ALLOWED,
        )
    if dry_run:
        return
    moved = [moved_to(connection.open(), move, tags[move.channel]) for move in moves]
    said = Revocation(reason=reason.strip(), at=int(time.time()))
    bundles.revise(settings, store, "image-revoke", digest, said)
    lines = [f"image {digest[:12]} is revoked: the site bundle says so, signed now", *moved, *_running(uses)]
    show(output, {**uses, "revoked": digest, "moved": dict(moves)}, (), (), "\n".join(lines))


@click.command()
@click.argument("image", shell_complete=complete.images)
@local_dry_run_option
@config_option
@output_option
def unrevoke(image: str, dry_run: bool, config: Path | None, output: str) -> None:
    """Take the revocation of IMAGE back: its digest, or 8 digits of it at least. Channels stay where they are.

    \b
      netboot image unrevoke 4c1d22e0
    """
    settings = find_config(config)
    known = bundles.revoked(settings)
    fitting = [digest for digest in known if len(image) >= 8 and digest.startswith(image)]
    if len(fitting) != 1:
        words = f"{len(fitting)} revoked images begin with {image}: see `netboot image revocations`"
        raise ApiError(words, "", 1 if fitting else UNKNOWN)
    if dry_run:
        value = {"unrevoked": fitting[0], "dry_run": True}
        show(output, value, (), (), f"image {fitting[0][:12]} would be revoked no more; nothing was changed")
        return
    store = Store(settings.store, wait=WAIT_SECONDS)
    bundles.revise(settings, store, "image-unrevoke", fitting[0], None)
    summary = f"image {fitting[0][:12]} is revoked no more: the site bundle says so, signed now"
    show(output, {"unrevoked": fitting[0]}, (), (), summary)


@click.command("revocations")
@config_option
@output_option
def list_(config: Path | None, output: str) -> None:
    """List the images that are revoked, since when and why.

    \b
      netboot image revocations
    """
    settings = find_config(config)
    store, said = Store(settings.store), revocations.read(settings.store)
    try:
        signed = frozenset(bundles.trusted_bundle(settings).images_revoked)
    except ImageError as error:
        click.secho(f"warning: what is in force cannot be told: {error}", fg="yellow", err=True)
        signed = frozenset()
    names = {each.digest: each.manifest.name for each in store.images()}
    value = [
        {
            "image": digest,
            "name": names.get(digest),
            "at": rfc3339(said[digest].at * 1000) if digest in said else None,
            "reason": said[digest].reason if digest in said else None,
            "in_force": digest in signed,
        }
        for digest in sorted(signed | said.keys())
    ]
    rows = [
        (
            image_digest(output, str(each["image"])),
            each["name"] or "not here",
            moment(said[digest].at * 1000) if (digest := str(each["image"])) in said else "not known",
            "in force" if each["in_force"] else "not signed: run `netboot config bundle`",
            each["reason"] or "not written down",
        )
        for each in value
    ]
    show(
        output,
        {"revocations": value},
        ("image", "recipe", "since", "state", "why"),
        rows,
        "no image is revoked",
        names=[each["image"] for each in value],
    )


def _room(settings: Config, digest: str) -> None:
    known = bundles.revoked(settings)
    if digest not in known and len(known) >= MOST_REVOKED:
        raise click.ClickException(
            f"{MOST_REVOKED} images are revoked, and a bundle has room for no more: raise minimum_epoch above theirs, "
            "then `netboot image unrevoke` them"
        )


def _uses(connection: Connection, digest: str, *, force: bool) -> Mapping[str, Any]:
    """Who boots and runs it; where nobody can tell and that was expected, nobody."""
    try:
        found = connection.open().images.uses(digest)
    except ClientError as error:
        if force:
            first, *_ = error.message.splitlines()
            click.secho(f"warning: who boots it cannot be told: {first}", fg="yellow", err=True)
            return {"image": digest, "channels": [], "boots": [], "runs": []}
        told = shown(error)
        why = f"who boots it cannot be told: {told.message}\nOr, whoever that is: --force-nothing-boots"
        raise ApiError(why, "", told.exit_code) from None
    return found


def _moves(settings: Config, store: Store, digest: str, uses: Mapping[str, Any], given: str | None) -> list[Move]:
    """What `--replace-with` comes to, before anything is changed."""
    if given is None:
        return []
    replacement = resolve(store, given)
    if replacement == digest or replacement in bundles.revoked(settings):
        raise click.ClickException(f"image {replacement[:12]} is revoked, or is to be: choose another")
    pinned = [channel["name"] for channel in uses["channels"] if channel["pinned"]]
    if pinned:
        raise ApiError(
            f"the inventory pins it to {', '.join(pinned)}", "edit it there, and then revoke it", NOT_ALLOWED
        )
    return [
        Move(channel["name"], replacement if channel["image"] in (digest, "") else channel["image"])
        for channel in uses["channels"]
    ]


def _require_fit(connection: Connection, output: str, moves: list[Move]) -> None:
    """All are looked at before the first is moved. Raises ApiError: machines of one cannot boot it."""
    for move in moves:
        judged = preflight(connection, move.channel, move.image, output, force=False)
        if judged.image != move.image:
            why = f"whether machines of channel {move.channel} can boot {move.image[:12]} cannot be told: {judged.why}"
            raise ApiError(why, "see `netboot config check`; nothing was changed", NOT_ALLOWED)


def _said(uses: Mapping[str, Any]) -> list[str]:
    lines = [f"image {uses['image'][:12]} is what {count(len(uses['boots']))} boot next{_names(uses['boots'])}"]
    for channel in uses["channels"]:
        pinned = ", pinned by the inventory" if channel["pinned"] else ""
        if channel["image"] == uses["image"]:
            lines.append(f"channel {channel['name']} points to it{pinned}")
        if channel["assigned"]:
            lines.append(f"rollouts of channel {channel['name']} assigned it to {count(channel['assigned'])}")
    return lines + _running(uses)


def _running(uses: Mapping[str, Any]) -> list[str]:
    if not uses["runs"]:
        return []
    return [f"{count(len(uses['runs']))} booted it, and may run it until rebooted{_names(uses['runs'])}"]


def _names(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f": {', '.join(names[:NAMES_SHOWN])}{more}"
