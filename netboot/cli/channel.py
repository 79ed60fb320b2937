"""`netboot channel`: which image machines boot. Asks the running service."""

from typing import Any

import click

from netboot.cli.client import Connection, api_command, segment
from netboot.cli.output import show


@click.group()
def group() -> None:
    """Point channels to images: `set` moves one, machines of the channel boot it from their next boot on."""


@group.command("list")
@api_command
def list_(connection: Connection, output: str) -> None:
    """List the channels of the inventory and the image of each.

    \b
      netboot channel list
    """
    listed = connection.open().get("/v1/channels")
    _show(output, listed, listed["channels"])


@group.command("show")
@click.argument("channel")
@api_command
def show_(channel: str, connection: Connection, output: str) -> None:
    """Show where CHANNEL points.

    \b
      netboot channel show stable
    """
    state = connection.open().get(f"/v1/channels/{segment(channel)}")
    _show(output, state, [state])


@group.command("set")
@click.argument("channel")
@click.argument("image")
@api_command
def set_(channel: str, image: str, connection: Connection, output: str) -> None:
    """Let CHANNEL point to IMAGE: a digest, the beginning of one, or a recipe's name for its newest image.

    The image must be signed by a key that the site trusts, and be whole.

    \b
      netboot channel set stable debian-12-minimal
    """
    state = connection.open().put(f"/v1/channels/{segment(channel)}", {"image": image})
    _show(output, state, [state])


def _show(output: str, value: Any, channels: list[dict[str, Any]]) -> None:
    rows = [
        (
            channel["name"],
            (channel["image"] or "")[:12],
            channel["image_name"],
            channel["machines"],
            _state(channel),
            channel["description"],
        )
        for channel in channels
    ]
    show(
        output,
        value,
        ("channel", "image", "recipe", "machines", "state", "description"),
        rows,
        "no channel is declared",
    )


def _state(channel: dict[str, Any]) -> str:
    if channel["unusable"]:
        return f"cannot be used: {channel['unusable']}"
    if channel["image"] is None:
        return "not set"
    if channel["in_force"] != channel["image"]:
        return "in force within a second"
    return "in force, pinned by the inventory" if channel["pinned"] else "in force"
