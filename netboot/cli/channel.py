"""`netboot channel`: which image machines boot. Asks the running service."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from netboot.cli import complete, fit
from netboot.cli.client import CANNOT_TELL, NOT_ALLOWED, ApiError, Connection, api_command
from netboot.cli.dry_run import dry_run_option
from netboot.cli.following import follow, watch_option
from netboot.cli.ordering import may_say_why_option
from netboot.cli.output import image_digest, program, show

if TYPE_CHECKING:
    from netboot.client.models import ChannelState, Move, Moved

    _Channels = Sequence[ChannelState | Moved]

_COLUMNS = ("channel", "image", "recipe", "machines", "state", "description")
_EMPTY = "no channel is declared"
_SAID = {"refuse": ("does not fit", "red"), "warn": ("warning", "yellow")}


@click.group()
def group() -> None:
    """Point channels to images: `set` moves one, machines of the channel boot it from their next boot on."""


@group.command("list")
@watch_option
@api_command
def list_(watched: bool, connection: Connection, output: str) -> None:
    """List the channels of the inventory and the image of each.

    \b
      netboot channel list
      netboot channel list --watch
    """
    client = connection.open()
    if watched:
        follow(client, output, lambda: client.channels.list()["channels"], partial(_row, output), _COLUMNS, _EMPTY)
        return
    listed = client.channels.list()
    _show(output, listed, listed["channels"])


@group.command("show")
@click.argument("channel", shell_complete=complete.channels)
@api_command
def show_(channel: str, connection: Connection, output: str) -> None:
    """Show where CHANNEL points.

    \b
      netboot channel show stable
    """
    state = connection.open().channels.get(channel)
    _show(output, state, [state])


@group.command("set")
@click.argument("channel", shell_complete=complete.channels)
@click.argument("image", shell_complete=complete.images)
@click.option(
    "--force",
    is_flag=True,
    help="Also where its machines cannot boot it, lack the memory, or a rollout is under way, which that ends.",
)
@may_say_why_option
@dry_run_option
@api_command
def set_(
    channel: str, image: str, force: bool, reason: str, dry_run: bool, connection: Connection, output: str
) -> None:
    """Let CHANNEL point to IMAGE: a digest, the beginning of one, or a recipe's name for its newest image.

    All its machines boot it from their next boot on, at once and unproven: it is for the first image, and for
    emergencies. `netboot rollout start` tries an image on a few machines first.

    The image must be signed by a key that the site trusts, and be whole. Where the site's configuration is here, it is
    judged by each class of the channel's machines: one of another architecture, or with too little memory for it
    (docs/gates.md#memory), is a refusal; drivers that it lacks for network cards, disks or GPUs are warnings.

    \b
      netboot channel set stable debian-12-minimal --dry-run
      netboot channel set stable debian-12-minimal
    """
    client = connection.open()
    judged = preflight(connection, channel, image, output, force=force)
    said = [misfit._asdict() for misfit in judged.misfits]
    body: Move = {"image": image, "force": force, "reason": reason, "dry_run": dry_run}
    state = client.channels.move(channel, body)
    if judged.image != state["image"]:
        why = judged.why or f"the service's {image} is another image than the one in the store here"
        click.echo(f"not judged whether the machines of {channel} can boot it: {why}", err=True)
        said = []
    _show(output, state | {"misfits": said}, [] if dry_run else [state], _would_be(state))
    if output != "json":
        for number in state["ended_rollouts"]:
            click.echo(f"rollout {number} {'would be' if dry_run else 'is'} cancelled: it assigns nothing any more")
        count, boot = state["machines"], "would boot" if dry_run else "boots" if state["machines"] == 1 else "boot"
        machines = f"{count} machine{'' if count == 1 else 's'}"
        click.echo(f"{machines} of channel {channel} {boot} it from the next boot on")
    if state["alone"]:
        told = f"other replicas could not be told where channel {channel} points, and go on as before"
        click.secho(f"{told}: set it there likewise, and once more when the API server answers", fg="yellow", err=True)
    if state["assignments_kept"]:
        what = f"the rollouts of channel {channel} cannot be read: whom one assigned an image boots that still"
        remedy = f"see `netboot doctor`; once they can be read, run `netboot channel set {channel}` again"
        raise ApiError(what, remedy, CANNOT_TELL)


def preflight(connection: Connection, channel: str, image: str, output: str, *, force: bool) -> fit.Judged:
    """Whether the channel's machines can boot an image, as far as the store here tells; says what is wrong.

    Raises:
        ApiError: they cannot, and nobody said `force`.
    """
    judged = fit.judge(connection.config, channel, image)
    for misfit in judged.misfits:
        word, colour = _SAID[misfit.outcome]
        click.secho(f"{word}: {misfit}", fg=colour, err=True)
    if judged.refused and not force:
        if output == "json":
            said = [misfit._asdict() for misfit in judged.misfits]
            program(output, {"misfits": said})
        raise ApiError(f"channel {channel} stays as it is", "choose another image, or say --force", NOT_ALLOWED)
    return judged


def _would_be(state: "Moved") -> str:
    image = f"{state['image_name']} {(state['image'] or '')[:12]}"
    return f"channel {state['name']} would be image {image}; nothing was changed"


def _show(output: str, value: Any, channels: "_Channels", empty: str = _EMPTY) -> None:
    names = [channel["name"] for channel in channels]
    show(output, value, _COLUMNS, [_row(output, channel) for channel in channels], empty, names=names)


def _row(output: str, channel: "ChannelState | Moved | Mapping[str, Any]") -> tuple[object, ...]:
    return (
        channel["name"],
        image_digest(output, channel["image"]),
        channel["image_name"],
        channel["machines"],
        _state(channel),
        channel["description"],
    )


def _state(channel: "ChannelState | Moved | Mapping[str, Any]") -> str:
    if channel["unusable"]:
        return f"cannot be used: {channel['unusable']}"
    if channel["image"] is None:
        return "not set"
    if channel["in_force"] != channel["image"]:
        return "in force within a second"
    return "in force, pinned by the inventory" if channel["pinned"] else "in force"
