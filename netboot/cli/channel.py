"""`netboot channel`: which image machines boot. Asks the running service."""

from pathlib import Path
from typing import Any

import click

from netboot.cli.client import api_options, open_client, segment, with_exit_codes
from netboot.cli.output import output_option, show


@click.group()
def group() -> None:
    """Point channels to images: `set` moves one, machines of the channel boot it from their next boot on."""


@group.command("list")
@api_options
@output_option
@with_exit_codes
def list_(config: Path | None, server: str | None, token_file: Path | None, output: str) -> None:
    """List the channels of the inventory and the image of each.

    \b
      netboot channel list
    """
    found = open_client(config, server, token_file).get("/v1/channels")
    _show(output, found, found["channels"])


@group.command("show")
@click.argument("channel")
@api_options
@output_option
@with_exit_codes
def show_(channel: str, config: Path | None, server: str | None, token_file: Path | None, output: str) -> None:
    """Show where CHANNEL points.

    \b
      netboot channel show stable
    """
    found = open_client(config, server, token_file).get(f"/v1/channels/{segment(channel)}")
    _show(output, found, [found])


@group.command("set")
@click.argument("channel")
@click.argument("image")
@api_options
@output_option
@with_exit_codes
def set_(
    channel: str, image: str, config: Path | None, server: str | None, token_file: Path | None, output: str
) -> None:
    """Let CHANNEL point to IMAGE: a digest, the beginning of one, or a recipe's name for its newest image.

    The image must be signed by a key that the site trusts, and be whole.

    \b
      netboot channel set stable debian-12-minimal
    """
    found = open_client(config, server, token_file).put(f"/v1/channels/{segment(channel)}", {"image": image})
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
