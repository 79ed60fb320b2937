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
    found = connection.open().get("/v1/channels")
    _show(output, found, found["channels"])


@group.command("show")
@click.argument("channel")
@api_command
def show_(channel: str, connection: Connection, output: str) -> None:
    """Show where CHANNEL points.

    \b
      netboot channel show stable
    """
    found = connection.open().get(f"/v1/channels/{segment(channel)}")
    _show(output, found, [found])


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
    found = connection.open().put(f"/v1/channels/{segment(channel)}", {"image": image})
    _show(output, found, [found])


def _show(output: str, value: Any, channels: list[dict[str, Any]]) -> None:
    rows = [
        (
            one["name"],
            (one["image"] or "")[:12],
            one["image_name"],
            one["machines"],
            _state(one),
            one["description"],
        )
        for one in channels
    ]
    show(
        output,
        value,
        ("channel", "image", "recipe", "machines", "state", "description"),
        rows,
        "no channel is declared",
    )


def _state(one: dict[str, Any]) -> str:
    if one["unusable"]:
        return f"cannot be used: {one['unusable']}"
    if one["image"] is None:
        return "not set"
    if one["in_force"] != one["image"]:
        return "in force within a second"
    return "in force, pinned by the inventory" if one["pinned"] else "in force"
