"""What people order of a machine that takes its Pods away: to drain it, and to reboot it then. Pure.

An order is wanted, and kept apart from all that becomes of it (rule L8): who carries it out says how far it is, and who
drives the service's own records ends it.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import Field

from images.values.strict import Strict
from netboot.lifecycle.intents import LONGEST_REASON

What = Literal["drain", "reboot"]
End = Literal["taken-off", "replaced", "undone", "rebooted"]
"""By a person; by a newer order; past its deadline; the machine has another boot."""
SHORTEST_MS, LONGEST_MS = 60_000, 24 * 3_600_000
"""Of a deadline, from now."""


class Drain(Strict):
    """One order. `boot`: the one that ran then, to which it is bound; `bare`, `local`: Pods without a controller, and
    Pods with an emptyDir, may be evicted, and are lost. `end` None: it stands."""

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
    """What `asked` does where `standing` stands. What is ordered already is not ordered again; a reboot takes a drain
    over, and a drain leaves a reboot alone, which drains too."""
    if standing is None:
        return Change(asked, did=True)
    more = (asked.bare and not standing.bare) or (asked.local and not standing.local)
    if standing.what == asked.what and (standing.what == "drain" or standing.boot == asked.boot) and not more:
        return Change(standing, did=False)
    if (standing.what, asked.what) == ("reboot", "drain") and standing.boot == asked.boot:
        return Change(standing, did=False)
    return Change(asked, did=True, replaced=standing)


class State(Strict):
    """How far an order is, as who carries it out says. `state`: waiting, draining, drained, ordered (to reboot), or the
    end that it has come to; `words`: why, for people."""

    id: str
    state: Literal["waiting", "draining", "drained", "ordered", "undone", "rebooted"]
    words: str
    since_ms: int


class DrainsStatus(Strict):
    """Of one cluster: by machine. `problem`: why nothing can be carried out now; "": it can."""

    at_ms: int
    problem: str = ""
    drains: Mapping[str, State] = Field(default_factory=dict)


class Drains(Protocol):
    """For reading. Every method raises StateUnavailableError where it cannot be told."""

    def standing(self) -> list[Drain]:
        """All that stand, by machine."""
        ...

    def of(self, machine: str, limit: int) -> list[Drain]:
        """Of one machine, what stands and what ended, the latest first."""
        ...


class DrainStore(Drains, Protocol):
    """With the side that writes. Durable when a method returns; raises StateUnavailableError, and then nothing was
    done."""

    def order(self, asked: Drain) -> Change:
        """Carry out `decide`."""
        ...

    def finish(self, drain: str, end: End, words: str, now_ms: int) -> Drain | None:
        """It has ended so; None: it does not stand."""
        ...
