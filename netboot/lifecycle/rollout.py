"""A rollout: how machines of a channel come to another image, a few at a time. Values, as they are kept; what becomes
of them is in `rollout_engine` (facts) and `rollout_orders` (operators)."""

from collections.abc import Mapping
from enum import StrEnum
from operator import not_
from typing import NamedTuple

from pydantic import Field

from images.values.strict import Strict
from images.values.types import Name, Sha256
from netboot.machines.strategy import Strategy


class RolloutState(StrEnum):
    """RUNNING and PAUSED ones are under way; the others have ended for good."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETE = "complete"
    UNDONE = "undone"
    CANCELLED = "cancelled"


UNDER_WAY = frozenset({RolloutState.RUNNING, RolloutState.PAUSED})


class MemberState(StrEnum):
    """Where a machine is on its way to the image that the rollout is bringing it to."""

    WAITING = "waiting"
    """Not its turn yet: it boots what it had."""
    ASSIGNED = "assigned"
    """It boots the image from its next boot on; it is drained, or waits to be, and was not told to reboot yet."""
    OUT = "out"
    """It left service, and is expected back."""
    DONE = "done"
    """In service with the image."""
    FAILED = "failed"
    """It did not come back in time, came back twice with another image, or begins one boot after the other: it boots
    what it had."""
    SKIPPED = "skipped"
    """It was not drained or not rebooted, is held, or left service long after it had come into it with the image: that
    says nothing of the image."""
    KEPT = "kept"
    """A machine of a control plane that nobody named: it keeps what it had, also when the rollout is complete."""
    LEFT = "left"
    """It uses another channel now, was retired or disabled, or is no longer in the inventory. One that is back waits
    for its turn."""


MOVING = frozenset({MemberState.ASSIGNED, MemberState.OUT})
"""Those that fill a place of the budget, however they are."""
APART = frozenset({MemberState.KEPT, MemberState.LEFT})
"""Those that it brings nowhere, and that fill no place of it."""
SETTLED = frozenset({MemberState.DONE, MemberState.FAILED, MemberState.SKIPPED}) | APART


class Member(Strict):
    """A machine of a rollout, as it was when that began, and how far it is. `previous`: what it booted before; `since`:
    what the rollout's clock showed when its state changed; `boot`: the boot that it had when its turn came; `tries`:
    how often it came back with another image, or was not rebooted in time."""

    machine: Name
    rack: str = ""
    position: int | None = Field(None, exclude_if=not_)
    """Its unit of the rack. Not written where it is not said: versions before it read that."""
    domain: str = Field("", exclude_if=not_)
    """Of the machines whose turn comes together, an accelerator's domain; "": it goes by itself. Not written then:
    versions before it read that."""
    class_name: str = ""
    named: bool = Field(False, exclude_if=not_)
    """Of a control plane, and named by the operator: its turn comes behind all others', and no other such machine's
    beside it. Not written otherwise: versions before it read that."""
    previous: Sha256
    state: MemberState = MemberState.WAITING
    canary: bool = False
    tries: int = 0
    since: int = 0
    boot: str = ""
    why: str = ""
    served: str = ""
    """The boot with which it was in service with the image last."""
    again: int = 0
    """How many boots it began after one of those, with which it came into service too."""
    proved: bool = False
    """It was in service with the image for as long as canaries have to be."""
    undone: bool = False
    """Its order to reboot came to nothing."""
    accepted: bool = False
    """It failed, or its order came to nothing, before an operator said that the rollout is to go on; or it was away
    when that began to be undone."""

    @property
    def last_boot(self) -> str:
        """The latest of its boots that the rollout knows of; "": none."""
        return self.served or self.boot if self.state is MemberState.DONE else self.boot


ANEW: Mapping[str, object] = {"served": "", "again": 0, "proved": False, "undone": False}
"""Of a machine that is brought to an image, from now on: nothing was seen with that."""


class Rollout(Strict):
    """`base`: what the channel pointed to when it began, and points to until it is complete; `clock_ms`: time in which
    machines could be seen; `undoing`: it brings machines back to what they had; `rolling`: the canaries have proved the
    image; `unproven`: its machines are in fewer than two racks; `blocked`: the clock when it could first not go on."""

    number: int
    channel: Name
    image: Sha256
    image_name: str
    base: Sha256
    strategy: Strategy
    on_next_boot: bool
    unproven: bool
    state: RolloutState = RolloutState.RUNNING
    undoing: bool = False
    rolling: bool = False
    why: str = ""
    clock_ms: int = 0
    blocked: int | None = None
    operator: str
    reason: str = ""
    verdict: str = Field("", exclude_if=not_)
    """Why it was undone by itself; "": it was not. Not written then: versions before it read that."""
    started_ms: int
    ended_ms: int | None = None

    @property
    def under_way(self) -> bool:
        """Whether anything may come of it."""
        return self.state in UNDER_WAY


class Stage(StrEnum):
    """How far an order to reboot a machine is, whoever gave it."""

    NONE = ""
    DRAINING = "draining"
    """It stands, for the boot that runs: its Pods are moved away, or it is told to reboot and is there still."""
    GONE = "gone"
    """The machine was told to reboot and its Node is not Ready, or it has another boot already."""


class Fact(NamedTuple):
    """How a machine is now. `up`: in service, or, where it joins no cluster, booted, and nothing is ordered of it;
    `image`, `boot`: of the boot that counts; `held`: in words, that somebody keeps it out of service; `gone`: why it is
    no member any more; `past`: the rollout knows of a later boot."""

    up: bool
    image: str
    boot: str
    held: str = ""
    gone: str = ""
    stage: Stage = Stage.NONE
    past: bool = False


class Assigned(NamedTuple):
    """What a rollout assigned to a machine, as long as that uses the channel."""

    channel: str
    image: str
    rollout: int


def target(rollout: Rollout, member: Member) -> str:
    """The image that a machine is to boot while the rollout is under way."""
    proved = member.state is MemberState.SKIPPED and member.proved
    begun = member.state in MOVING or member.state is MemberState.DONE or proved
    return rollout.image if begun and not rollout.undoing else member.previous


def assignments(rollout: Rollout, members: Mapping[str, Member]) -> dict[str, Assigned]:
    """Every machine's that has not left. Of a rollout that has ended only where it is not what the channel points to
    since: a machine that failed keeps what it had, until the next rollout or `channel set`."""
    if rollout.state is RolloutState.CANCELLED:
        return {}
    after = {RolloutState.COMPLETE: rollout.image, RolloutState.UNDONE: rollout.base}.get(rollout.state)
    targets = {name: target(rollout, each) for name, each in members.items() if each.state is not MemberState.LEFT}
    absent = {
        name
        for name, each in members.items()
        if rollout.state is RolloutState.COMPLETE and each.state in (MemberState.WAITING, MemberState.SKIPPED)
    }
    return {
        name: Assigned(rollout.channel, image, rollout.number)
        for name, image in targets.items()
        if image != after and name not in absent
    }


def images(rollout: Rollout, members: Mapping[str, Member]) -> set[str]:
    """Those that it may assign still, that undoing it needs, or going back to what was before it."""
    return {rollout.image, rollout.base} | {each.previous for each in members.values()}


class Renewal(NamedTuple):
    """A wish that a machine be drained and rebooted. `boot`: the one that it is to end; `may_begin`: it may be ordered
    now, else what was ordered goes on and no more."""

    rollout: Rollout
    boot: str
    may_begin: bool
