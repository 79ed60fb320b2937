"""What points to images: channels, and the references of those who still need one. Small JSON files of the store."""

import json
from dataclasses import dataclass
from pathlib import Path

from images.errors import CorruptError


@dataclass(frozen=True, slots=True)
class ChannelState:
    """Where a channel points: `image` now, `previous` before that; `at` in seconds since 1970."""

    name: str
    image: str
    previous: str | None
    at: int


def read_channel(path: Path) -> ChannelState:
    """A channel's file.

    Raises:
        CorruptError: with the remedy.
    """
    try:
        value = json.loads(path.read_bytes())
        state = ChannelState(path.stem, value["image"], value["previous"], value["at"])
    except (OSError, ValueError, KeyError, TypeError):
        raise CorruptError(f"{path} is damaged: set the channel again with `netboot channel set {path.stem}`") from None
    return state


def read_reference(path: Path) -> frozenset[str]:
    """The digests that an owner needs.

    Raises:
        CorruptError: with the remedy.
    """
    try:
        return frozenset(json.loads(path.read_bytes())["images"])
    except (OSError, ValueError, KeyError, TypeError):
        raise CorruptError(f"{path} is damaged; the service writes it anew when it starts") from None
