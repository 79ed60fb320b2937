"""Machines of a rollout as one value of an object: JSON, compressed (zlib), in base64."""

import base64
import json
import random
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import FailFast, Field, TypeAdapter, ValidationError

from images.values.faults import first_fault
from netboot.lifecycle.errors import RolloutRefusedError
from netboot.lifecycle.rollout import Member

LARGEST = 1_400_000
"""Of machines, packed, in characters: an API server takes 1.5 MiB, https://etcd.io/docs/v3.6/dev-guide/limit/."""
_UNPACKED = 12 << 20
"""What it may come to, in bytes: more than three times what 15,000 machines with two boots each do (3.3 MiB)."""
_MEMBERS = TypeAdapter(Annotated[list[Member], FailFast(), Field(max_length=50_000)])


class UnreadableError(ValueError):
    """It is nothing that was packed here; the words say why."""


def packed(members: Iterable[Member]) -> str:
    """Machines of a rollout as one value of an object; without the words why each is where it is, where these take too
    much of it.

    Raises:
        RolloutRefusedError: they are more than it holds.
    """
    rows = [each.model_dump(mode="json", exclude_defaults=True) for each in members]
    value = _packed(rows) or _packed([{**row, "why": ""} for row in rows])
    if value is None:
        raise RolloutRefusedError(f"{len(rows):,} machines are more than a rollout can have: use several channels")
    return value


def _packed(rows: Sequence[Mapping[str, object]]) -> str | None:
    text = json.dumps(rows, separators=(",", ":")).encode()
    value = base64.b64encode(zlib.compress(text, 6)).decode()
    return value if len(value) <= LARGEST and len(text) <= _UNPACKED else None


def have_room(members: Iterable[Member]) -> None:
    """As they are in the end, with two boots each, which nothing compresses.

    Raises:
        RolloutRefusedError: they are more than one value holds then.
    """
    chance = random.Random(0)  # noqa: S311 - stands in for what is not known yet, and is written nowhere
    packed(
        each.model_copy(update={"boot": _a_boot(chance), "served": _a_boot(chance), "since": chance.randrange(10**8)})
        for each in members
    )


def unpacked(value: str) -> dict[str, Member]:
    """Raises UnreadableError."""
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(base64.b64decode(value, validate=True), _UNPACKED)
    except (ValueError, zlib.error) as error:
        raise UnreadableError(f"is not base64 of what zlib compressed: {error}") from None
    if not unpacking.eof or unpacking.unused_data:
        raise UnreadableError("is cut off, longer than it may be, or has more behind it")
    try:
        members = _MEMBERS.validate_json(text)
    except ValidationError as error:
        fault = first_fault(error)
        raise UnreadableError(f"{fault.key}: {fault.message}") from None
    found = {each.machine: each for each in members}
    if len(found) != len(members):
        raise UnreadableError("has a machine twice")
    return found


def _a_boot(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128)))
