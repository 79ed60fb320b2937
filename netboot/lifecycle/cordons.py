"""Cordons (`spec.unschedulable`), which others set on Nodes and netboot never does: each becomes a hold of its machine
before its Node is deleted, so that no reboot takes it off (rule L4). Pure.

A boot that attested and has no token yet has no Node of its own: the one that is there is of an earlier boot, and join
is about to delete it.
"""

from collections.abc import Mapping, Sequence

from pydantic import Field

from images.values.strict import Strict
from netboot.lifecycle.intents import Intent, PutOn
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import MachineState
from netboot.lifecycle.transitions import Mark
from netboot.status import Timed

CORDON = "cordon"
"""The owner of holds that were cordons."""


class Cordon(Strict):
    """A Node that somebody cordoned. `by`: who and when, as the API server has it; "": it does not say; `uid`: which of
    the Nodes that there have been of that name."""

    node: str
    by: str = ""
    uid: str = ""

    @property
    def who(self) -> str:
        """For the hold."""
        return self.by or "somebody who cordoned it"


class CordonsStatus(Timed):
    """Of one cluster: by machine."""

    cordons: Mapping[str, Cordon] = Field(default_factory=dict)


def hold_of(cordon: Cordon) -> PutOn:
    """What a cordon becomes. It has no end: people take it off."""
    return PutOn(Mark.HELD, f"the Node {cordon.node} was cordoned when it was deleted", owner=CORDON)


def is_kept(intents: Sequence[Intent]) -> bool:
    """Whether what stands of a machine has the hold that a cordon becomes. One of an operator ends when that is over,
    and the cordon would have gone on."""
    return any(intent.mark is Mark.HELD and intent.owner == CORDON for intent in intents)


def loses_its_node(state: MachineState | None) -> bool:
    """Whether join is about to delete the Node that a machine has now."""
    boot = state.current if state is not None else None
    if boot is None:
        return False
    return boot.phase(Phase.ATTESTED) is not None and boot.phase(Phase.TOKEN_ISSUED) is None
