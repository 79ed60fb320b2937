"""Moving channels off an image: what they are then, and only where nobody else has moved them meanwhile."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from netboot.cli.client import NOT_ALLOWED, ApiError, Client, Connection
from netboot.client import ClientError


class Move(NamedTuple):
    """Where a channel is to point; of one to which only rollouts assigned the image, where it points already."""

    channel: str
    image: str


def tag_of(client: Client, channel: str) -> str | None:
    """Of what a channel is now; None: nobody can read that, and whoever acts on it is told what is wrong."""
    try:
        return client.tagged(client.channels.get, channel)[1]
    except ClientError:
        return None


@contextmanager
def not_meanwhile(changed: ApiError) -> Iterator[None]:
    """Around an act with the tag of what it is on. Raises `changed`: that was changed after it was looked at."""
    try:
        yield
    except ClientError as error:
        if error.problem is None or error.problem.code != "precondition-failed":
            raise
        raise changed from None


def moved_just_now(channel: str) -> ApiError:
    """By somebody else."""
    return ApiError(f"channel {channel} was moved just now", "run it again; nothing was changed", NOT_ALLOWED)


def current_tags(connection: Connection, uses: Mapping[str, Any]) -> dict[str, str]:
    """Channel → the tag of what it is, so that no other's move since is undone; "": nobody can read where it points.

    Raises:
        ApiError: one was moved just now.
    """
    tags, client = dict[str, str](), connection.open()
    for channel in uses["channels"]:
        name = channel["name"]
        try:
            state, tags[name] = client.tagged(client.channels.get, name)
        except ClientError:
            tags[name] = ""  # moving it mends that, or says what is wrong
            continue
        if channel["image"] not in (state["image"], ""):
            raise moved_just_now(name)
    return tags


def moved_to(client: Client, move: Move, tag: str) -> str:
    """Move it, and say so. Raises ClientError: it has not that tag (any more), or may not be moved."""
    state = client.channels.move(move.channel, {"image": move.image, "force": True}, if_match=tag or None)
    ended = "".join(f"; rollout {number} is cancelled" for number in state["ended_rollouts"])
    return f"channel {move.channel} is image {move.image[:12]} now, for {count(state['machines'])}{ended}"


def count(number: int) -> str:
    """So many machines, in words."""
    return f"{number} machine{'' if number == 1 else 's'}"
