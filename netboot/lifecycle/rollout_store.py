"""Where rollouts are kept: the port. Management writes what operators ask, the controllers what became of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from images.values.strict import Strict
from netboot.lifecycle.rollout import MOVING, Assigned, Member, MemberState, Rollout
from netboot.lifecycle.rollout_counts import ByRack, Counts

Members = dict[str, Member]
Change = Callable[[Rollout, Members], tuple[Rollout, Members]]


class Note(NamedTuple):
    """A line of a rollout's history: who did what, and why."""

    at_ms: int
    who: str
    act: str
    said: str = ""


class Listed(NamedTuple):
    """A rollout, with what follows from its machines (`counted`) and without them."""

    rollout: Rollout
    counts: Counts


class Summed(NamedTuple):
    """The same of one, and its machines rack by rack (`by_rack`)."""

    rollout: Rollout
    counts: Counts
    by_rack: ByRack


class After(NamedTuple):
    """A machine that a part of a list goes on after. `state`: in which it was, where the list is of states."""

    state: MemberState | None
    machine: str


class Entry(Strict):
    """The same, as it is read."""

    at_ms: int
    rollout: int
    who: str
    act: str
    said: str


class RolloutStore(Protocol):
    """Every method raises StateUnavailableError when it cannot be read, or written."""

    def listed(self, limit: int, before: int | None = None) -> list[Listed]:
        """The newest first, or of those before that number; whatever the number of their machines."""
        ...

    def under_way(self) -> list[Rollout]:
        """Those that have not ended, by number."""
        ...

    def refresh(self) -> None:
        """What is known of them is of now; where there are no other replicas it is."""
        ...

    def behind(self) -> str:
        """Why it cannot be told what other replicas did about them; "": it can, or there are no others."""
        ...

    def hidden(self) -> list[str]:
        """What keeps rollouts that are under way for other replicas from being known here, in words: one each."""
        ...

    def rollout(self, number: int) -> Rollout:
        """Raises NoSuchRolloutError."""
        ...

    def summed(self, number: int) -> Summed:
        """One, whatever the number of its machines. Raises NoSuchRolloutError."""
        ...

    def members(self, number: int) -> Members:
        """A rollout's machines, by name."""
        ...

    def part(self, number: int, states: Sequence[MemberState], after: After | None, limit: int) -> list[Member]:
        """At most `limit` machines of a rollout that are in one of these states, state by state as they are given, by
        name; by name alone of all states, where none is given. Whatever the number of the others."""
        ...

    def history(self, number: int, limit: int) -> list[Entry]:
        """What was done to a rollout, the newest first."""
        ...

    def assigned(self) -> Mapping[str, Assigned]:
        """Machine → what a rollout assigned to it."""
        ...

    def images(self) -> set[str]:
        """Images that are assigned, or that machines may have to go back to."""
        ...

    def start(self, rollout: Rollout, members: Members, note: Note) -> Rollout:
        """Write a new one down; with its number.

        Raises:
            RolloutRefusedError: one of the channel is under way.
        """
        ...

    def change(self, number: int, change: Change, note: Callable[[Rollout, Rollout], Note | None]) -> Rollout:
        """Read, change and write, and nobody between; what `change` raises leaves all as it was. `note(before, after)`:
        the line for its history; None: none.

        Raises:
            NoSuchRolloutError.
        """
        ...

    def release(self, channel: str) -> None:
        """What ended rollouts left assigned in this channel is assigned no more."""
        ...


def in_hand(store: RolloutStore) -> dict[str, str]:
    """Machine → which rollout has it now, in words."""
    return {
        name: f"rollout {rollout.number} of channel {rollout.channel} has it"
        for rollout in store.under_way()
        for name, member in store.members(rollout.number).items()
        if member.state in MOVING
    }
