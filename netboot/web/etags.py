"""What counts as seen of each thing that can be changed: the one table of what is in its tag (`ETag`) and what is not.

A new field of an answer counts, unless it is named here: a tag that changes too often asks a writer to look again, one
that changes too seldom lets them overwrite what they never saw.
"""

from netboot.web import (
    channels,
    declared,
    declared_items,
    drains,
    enrolments,
    freeze,
    intents,
    inventory,
    machines,
    remedies,
    rollouts,
)
from netboot.web.preconditions import OF_CHANNEL, OF_MACHINE, Tag

_BOOTS = ("current", "pending", "claims", "boots", "checked", "conditions")
"""Of a machine: they come by themselves, every few seconds while it boots."""
_FAR = {"drains": ("state",)}
"""How far a drain is."""

MACHINE = Tag(OF_MACHINE, machines.shown, without=(*_BOOTS, "alerts"), within=_FAR)
INTENTS = Tag("intents", intents.shown)
DRAINS = Tag("drains", drains.shown, within=_FAR)
ENROLMENT = Tag("enrolment", enrolments.shown)
CHANNEL = Tag(OF_CHANNEL, channels.shown, without=("in_force", "machines"))
"""It is in force within a second, and how many machines boot it is no matter of the channel."""
ROLLOUT = Tag(
    "rollout",
    rollouts.told,
    only=("number", "channel", "image", "base", "strategy", "on_next_boot", "state", "undoing", "verdict"),
)
"""Not how far it is: its machines go on by themselves."""
FREEZE = Tag(
    "freeze",
    freeze.shown,
    without=("did", "dry_run", "concerned"),
    within={"windows": ("closes_at", "opens_at"), "signal": ("age_seconds",)},
)
PAUSE = Tag("pause", remedies.paused)
INVENTORY = Tag("inventory", inventory.compared)
DECLARED = Tag("declared", declared.shown, only=("declared", "file"), alone=declared_items.writing)
ITEM = Tag("item", inventory.shown, only=("declared", "file"), alone=declared_items.writing)

ON_MACHINE, ON_CHANNEL, ON_ROLLOUT = (MACHINE,), (CHANNEL,), (ROLLOUT,)
ON_FREEZE, ON_PAUSE, ON_INVENTORY, ON_DECLARED, ON_ITEM = (FREEZE,), (PAUSE,), (INVENTORY,), (DECLARED,), (ITEM,)
ON_INTENTS = (MACHINE, INTENTS)
ON_DRAINS = (MACHINE, DRAINS)
ON_ENROLMENT = (MACHINE, ENROLMENT)
"""What acts take the tags of. The first says which acts are done one after the other, and whose tag an answer has where
none was sent. Acts that name several things in their body take no tag, and wait for the others themselves
(`preconditions.alone`)."""
