"""What objects of rollouts say, as models; `netboot.lifecycle.rollout_objects` reads and writes them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from images.values.strict import Strict
from images.values.types import Matching, Name, Sha256
from netboot.clock import Moment
from netboot.lifecycle.holds import one_line
from netboot.lifecycle.intents import LONGEST_REASON
from netboot.lifecycle.order_objects import LONGEST_WHO, LONGEST_WORDS, printable
from netboot.lifecycle.packed_members import LARGEST
from netboot.machines.strategy import Strategy

NOTES = 50
"""That an object has: the last ones. Older ones are on the disks of replicas that were there."""
LONGEST_NAME = 256
LAST_NUMBER = 10**9
"""Of rollouts."""

_Words = Annotated[str, StringConstraints(max_length=LONGEST_WORDS), AfterValidator(printable)]
_Name = Annotated[str, StringConstraints(max_length=LONGEST_NAME), AfterValidator(printable)]
_Who = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_WHO), AfterValidator(one_line)]


class NoteTold(Strict):
    """Who did what to a rollout."""

    at: Moment
    """When."""
    who: _Who
    """Who did it, in his own words; netboot: by itself."""
    act: Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(one_line)]
    """What was done."""
    said: _Words = ""
    """Why, for people."""


class LastRollout(Strict):
    """A rollout of a channel, and how far it is."""

    number: Annotated[int, Field(ge=1, le=LAST_NUMBER)]
    """By which `netboot rollout` knows it."""
    channel: Name
    """Of which channel it is: the object's name, in a copy another one."""
    image: Sha256
    """The digest of the image that its machines are brought to."""
    image_name: _Name
    """What that is called."""
    base: Sha256
    """The digest of the image that the channel had when it began."""
    state: Literal["running", "paused", "complete", "undone", "cancelled"]
    """running and paused ones are under way; the others have ended for good."""
    undoing: bool = False
    """It brings machines back to what they had."""
    rolling: bool = False
    """The canaries have proved the image."""
    done: Annotated[int, Field(ge=0)]
    """How many of its machines are in service with the image."""
    of: Annotated[int, Field(ge=0)]
    """How many it brings to the image."""
    why: _Words = ""
    """What it waits for, or why it ended so, for people."""
    verdict: _Words = ""
    """Why it was undone by itself."""
    operator: _Who
    """Who began it."""
    reason: Annotated[str, StringConstraints(max_length=LONGEST_REASON), AfterValidator(printable)] = ""
    """Why, for people."""
    started: Moment
    """When."""
    ended: Moment | None = None
    """When it ended; left out: it is under way."""
    strategy: Strategy
    """How machines are brought to the image."""
    on_next_boot: bool
    """Nobody is rebooted by it."""
    unproven: bool
    """Its machines are in fewer than two racks."""
    clock: Annotated[int, Field(ge=0)] = 0
    """Milliseconds in which its machines could be seen: by these its deadlines go."""
    blocked: Annotated[int, Field(ge=0)] | None = None
    """What the clock showed when it could first not go on."""
    released: bool = False
    """What it left assigned when it ended is assigned no more."""
    notes: Annotated[tuple[NoteTold, ...], Field(max_length=NOTES)] = ()
    """What was done to it, the last of these last."""
    members: Annotated[str, StringConstraints(max_length=LARGEST), Matching("[A-Za-z0-9+/]*={0,2}", "must be base64")]
    """Its machines: JSON, compressed (zlib), in base64. `netboot rollout status` shows them."""


class RolloutSpec(Strict):
    """Where a channel points, and its last rollout. netboot writes it: `netboot channel set`, `netboot rollout start`,
    `pause`, `resume`, `undo`, and what becomes of a rollout."""

    image: Sha256
    """The digest of the image that the channel points to."""
    image_name: _Name = ""
    """What it is called."""
    who: _Who
    """Who set it so, in his own words, or a rollout by its number."""
    since: Moment
    """When it was set last, be it to what it was, or a rollout of it began or was complete."""
    rollout: LastRollout | None = None
    """Left out: it has had none since it is shared."""
