"""What operators want of machines, whatever these do: held, in quarantine, accepted. Kept apart from all that is
observed, so that no observation, and no loss of all of them, takes one off. The rules: `intent_rules`; docs/acts.md.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple, Protocol

from pydantic import BeforeValidator, Field, StringConstraints

from images.values.strict import Strict
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.transitions import Mark
from netboot.machines.maintenance import Freeze, Permission, Signal, Window, may_act

OPERATORS = "operator"
"""The owner of what people put on. What something else puts on is owned by that, by its name."""
LONGEST_REASON = 500
LONGEST_MS = 366 * 86_400_000
"""The end of what is put on with an end is not further away."""

LONGEST_ACCEPTED_MS = 30 * 86_400_000
"""Likewise of a machine that is accepted: what is to last longer is said in the inventory, of its checks."""


class Exemption(StrEnum):
    """What is let pass of a machine. None of these is a mark: they keep it from nothing."""

    ACCEPTED = "Accepted"
    """Its gate opens in spite of its checks."""


def _want(value: object) -> "Want":
    text = str(value)
    return Exemption(text) if text in set(Exemption) else Mark(text)


Want = Mark | Exemption
ReadWant = Annotated[Want, BeforeValidator(_want)]
"""As it lies in a file."""
Owner = Annotated[str, StringConstraints(pattern=r"^[a-z]+(/[A-Za-z0-9._-]{1,64}){0,2}$")]


class DeclaredBy(Strict):
    """The object of Kubernetes that wants it. `of`: of which namespace and definition it is, by their uids; `uid`: its
    own; `machine`: the one that it names, whatever that is called now."""

    of: str
    uid: str
    machine: str


class Intent(Strict):
    """One mark on one machine, or one exemption, by one owner. `who`: in the owner's words, such as the operator's
    name; `until_ms` None: until it is taken off; `object` None: none declares it, or it is not known which."""

    machine: str
    mark: ReadWant
    owner: Owner
    who: str
    reason: Annotated[str, Field(max_length=LONGEST_REASON)]
    since_ms: int
    until_ms: int | None = None
    object: DeclaredBy | None = None

    def stands(self, now_ms: int) -> bool:
        """Whether it has not ended."""
        return self.until_ms is None or now_ms < self.until_ms


class PutOn(NamedTuple):
    """Want this of the machine. `until_ms` None: until it is taken off. `exactly`: what its owner has put on becomes
    this, with an earlier end, another reason and another object, too."""

    mark: Want
    reason: str
    until_ms: int | None = None
    owner: str = OPERATORS
    exactly: bool = False
    object: DeclaredBy | None = None


class TakeOff(NamedTuple):
    """Want it no more. `owner` None: whoever put it on, which is for people alone; but what owners have whose name
    begins with `but` stays, and `Change.stands` has that. "": nobody's."""

    mark: Want
    reason: str
    owner: str | None = None
    but: str = ""


Order = PutOn | TakeOff


class Change(NamedTuple):
    """What an order does. `act` "": nothing, it is so already. `concerned`: what is put on, altered or taken off, or
    where nothing is done, what stands."""

    act: str
    put: tuple[Intent, ...] = ()
    removed: tuple[Intent, ...] = ()
    stands: tuple[Intent, ...] = ()

    @property
    def concerned(self) -> tuple[Intent, ...]:
        """Of this mark."""
        return self.put or self.removed or self.stands


class Entry(Strict):
    """One line of a machine's history. `act`: put-on, extended, altered, taken-off or ended."""

    id: int = 0
    at_ms: int
    machine: str
    mark: ReadWant
    act: str
    owner: str
    who: str
    reason: str
    until_ms: int | None = None


class Intents(Protocol):
    """For reading. Every method raises StateUnavailableError where it cannot be told: a file that is gone or damaged is
    never taken for one that says nothing."""

    def of(self, machine: str, now_ms: int) -> list[Intent]:
        """What stands of a machine, the gravest first."""
        ...

    def all(self, now_ms: int) -> list[Intent]:
        """What stands of all, by machine."""
        ...


class IntentStore(Intents, Protocol):
    """With the side that writes. Durable when a method returns; raises StateUnavailableError, and then nothing was
    done."""

    def order(self, machine: str, order: Order, who: str, now_ms: int) -> Change:
        """Carry it out."""
        ...

    def history(self, machine: str | None, limit: int) -> list[Entry]:
        """The latest first; of one machine or of all."""
        ...


def marks_of(intents: Sequence[Intent]) -> frozenset[Mark]:
    """What is on a machine by these."""
    return frozenset(intent.mark for intent in intents if isinstance(intent.mark, Mark))


def by_machine(intents: Sequence[Intent]) -> Mapping[str, Sequence[Intent]]:
    """Machine → those of it, in their order."""
    found: dict[str, list[Intent]] = {}
    for intent in intents:
        found.setdefault(intent.machine, []).append(intent)
    return found


class Freezes(Protocol):
    """Whether the fleet is frozen, for reading. Raises StateUnavailableError where it cannot be told."""

    def standing(self, now_ms: int) -> Freeze | None:
        """The freeze that has not ended."""
        ...


class Signals(Protocol):
    """What somebody outside says of whether anything may begin."""

    def said(self) -> Signal | None:
        """As it is now: that it cannot be told is a word too, and lets nothing begin. None: nobody is asked."""
        ...


def permission(freezes: Freezes, signals: Signals, windows: Sequence[Window], now_ms: int) -> Permission:
    """Whether what acts by itself may begin something now: the one question that it asks before it does. Where it
    cannot be told, it may not."""
    try:
        freeze = freezes.standing(now_ms)
    except CannotTellError as error:
        return Permission(may=False, reason=f"whether the fleet is frozen cannot be told: {error}")
    return may_act(windows, freeze, signals.said(), now_ms)


class FreezeStore(Freezes, Protocol):
    """With the side that writes; durable when a method returns."""

    def put(self, asked: Freeze) -> tuple[Freeze, str]:
        """Carry it out, by `netboot.machines.maintenance.frozen`."""
        ...

    def end(self, now_ms: int) -> Freeze | None:
        """None stands any more; the one that did."""
        ...
