"""The ledger of what takes a machine's Pods away: orders to drain it, and to reboot it then, by people and by rollouts.
Pure.

Of each machine one order stands at most: who wants to drain or reboot one reserves its slot here first, and it is free
again when the order has ended. An order is wanted, and kept apart from all that becomes of it (rule L8): who carries it
out says how far it is, and who drives the service's own records ends it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import Field

from images.values.strict import Strict
from netboot.lifecycle.errors import ActRefusedError
from netboot.lifecycle.intents import LONGEST_REASON, OPERATORS, Owner
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import MachineState

What = Literal["drain", "reboot"]
End = Literal["taken-off", "replaced", "undone", "rebooted", "withdrawn"]
"""By a person; by a newer order; past its deadline, or its machine left; the machine has another boot; by the rollout
that gave it, before its machine was told."""
SHORTEST_MS, LONGEST_MS = 60_000, 24 * 3_600_000
"""Of a deadline, from now."""
FRESH_MS = 120_000
"""How old what a node collector says may be."""
AT_ONCE_SECONDS = 20.0
"""What has not been ordered, or has not ended, by then is with the next look: an API server that is slow holds nothing
else up for long."""


class Drain(Strict):
    """One order. `boot`: the one that ran then, to which it is bound; `bare`, `local`: Pods without a controller, and
    Pods with an emptyDir, may be evicted, and are lost. `end` None: it stands. `owner`: OPERATORS, or the rollout;
    `who`: in the owner's words."""

    id: str
    machine: str
    what: What
    boot: str
    who: str
    reason: Annotated[str, Field(max_length=LONGEST_REASON)]
    since_ms: int
    deadline_ms: int
    bare: bool = False
    local: bool = False
    owner: Owner = OPERATORS
    end: End | None = None
    ended_ms: int | None = None
    words: str = ""
    """How it ended."""


class Change(NamedTuple):
    """What asking comes to. `drain`: what stands then; `did`: it is a new one; `replaced`: the one that stood."""

    drain: Drain
    did: bool
    replaced: Drain | None = None


def decide(standing: Drain | None, asked: Drain) -> Change:
    """What an operator's `asked` does where `standing` stands. What is ordered already is not ordered again; a reboot
    takes a drain over, and a drain leaves a reboot alone, which drains too, but for a rollout's: who says that a
    machine is to stay drained has the last word."""
    if standing is None:
        return Change(asked, did=True)
    more = (asked.bare and not standing.bare) or (asked.local and not standing.local)
    if standing.what == asked.what and (standing.what == "drain" or standing.boot == asked.boot) and not more:
        return Change(standing, did=False)
    by_people = standing.owner == OPERATORS
    if (standing.what, asked.what) == ("reboot", "drain") and standing.boot == asked.boot and by_people:
        return Change(standing, did=False)
    return Change(asked, did=True, replaced=standing)


def ended_by(replaced: Drain, asked: Drain) -> Drain:
    """An order whose place a newer one took."""
    words = f"{asked.what} was ordered by {asked.who}"
    return replaced.model_copy(update={"end": "replaced", "ended_ms": asked.since_ms, "words": words})


class State(Strict):
    """How far an order is, as who carries it out says. `state`: waiting, draining, drained, ordered (to reboot), or the
    end that it has come to; `words`: why, for people."""

    id: str
    state: Literal["waiting", "draining", "drained", "ordered", "undone", "rebooted"]
    words: str
    since_ms: int


def orderable(machine: str, state: MachineState | None, *, joins: bool) -> str:
    """The boot of a machine that has a Node, to which an order is bound. `joins`: a cluster that the service knows.

    Raises:
        ActRefusedError: it has none.
    """
    if not joins:
        raise ActRefusedError(f"{machine} joins no cluster, so nothing can be drained, and nobody there takes an order")
    if state is None or state.current is None or state.current.phase(Phase.NODE_REGISTERED) is None:
        raise ActRefusedError(f"{machine} has no Node in its current boot: see `netboot machine show {machine}`")
    return state.current.boot


TOLD = ("ordered", "rebooted")
"""Of these states its machine is on its way, or has been."""


class DrainsStatus(Strict):
    """Of one cluster: by machine. `leads`: this replica carries them out. `problem`: why nothing can be carried out
    now; "": it can; `lacks`: which rights the nodes account has not that it needs, in words."""

    at_ms: int
    leads: bool = True
    problem: str = ""
    lacks: str = ""
    drains: Mapping[str, State] = Field(default_factory=dict)

    def fresh(self, now_ms: int) -> bool:
        """Whether it was said just now."""
        return abs(now_ms - self.at_ms) <= FRESH_MS


class Reserved(NamedTuple):
    """An order that stands. `told`: its machine was told to reboot, and is on its way by now, or soon; None: that is
    not known."""

    drain: Drain
    told: bool | None


def reserved(
    standing: Iterable[Drain], said: Iterable[DrainsStatus], elsewhere: Mapping[str, State] = MappingProxyType({})
) -> dict[str, Reserved]:
    """By machine. `said`: by those who carry them out; `elsewhere`: as other replicas say it."""
    states = [*elsewhere.values(), *(state for status in said for state in status.drains.values())]
    told = {state.id: state.state in TOLD for state in states}
    return {drain.machine: Reserved(drain, told.get(drain.id)) for drain in standing}


class Drains(Protocol):
    """For reading. Every method raises StateUnavailableError where it cannot be told."""

    def standing(self) -> list[Drain]:
        """All that stand, by machine."""
        ...

    def stands(self, machine: str) -> Drain | None:
        """Of one machine, by whomever, as it is now; raises CannotTellError where that cannot be asked."""
        ...

    def of(self, machine: str, limit: int) -> list[Drain]:
        """Of one machine, what stands and what ended, the latest first."""
        ...

    def last(self, owner: str, machines: Collection[str]) -> Mapping[str, Drain]:
        """Machine → the last order that this owner gave of it, where it gave one."""
        ...

    def elsewhere(self) -> Mapping[str, State]:
        """Machine → how far what stands of it is, as whichever replica carries it out said; nothing where there are no
        others."""
        ...


class DrainStore(Drains, Protocol):
    """With the side that writes. Durable when a method returns; raises CannotTellError, and then nothing was done, as
    far as it can be told."""

    shared: bool
    """Whether those of all replicas are here."""

    def order(self, asked: Drain) -> Change:
        """Carry out `decide`."""
        ...

    def reserve(self, asked: Sequence[Drain], known: Collection[str]) -> list[Drain]:
        """What acts by itself orders these: which of them were written. It takes no order over. `known`: the
        `budget.slots` of the words by which it counted who is out of service; where another one stands by now, an
        order, a hold or a quarantine, nothing is ordered, for it has to count anew. Where it raises, some may stand."""
        ...

    def finish(self, drain: str, end: End, words: str, now_ms: int) -> Drain | None:
        """It has ended so; None: it does not stand."""
        ...
