"""The ledger of machines that are out of service, or may be soon: whatever takes one out reserves a slot first. Pure.

Everything that is not in service fills a slot by itself; a reserved one is filled before its machine goes, so that two
that act do not both count the same room. A slot is free again when its machine is back in service by another boot, when
it is in service by the same one and the order has expired, or when it is retired; one that is unreachable keeps it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, NamedTuple, Protocol

from pydantic import Field

from images.values.strict import Strict
from images.values.types import Matching

DAY = 86_400
Most = Annotated[str, Matching(r"[1-9]\d{0,5}|(100|[1-9]\d?)%", "must be a number of machines, or a percentage: 5%")]
_NAMED = 3


class Budget(Strict):
    """How much may be out of service at once, and how often one machine may be tried."""

    max_unavailable: Most = "5%"
    """Of the machines that are declared, enabled and not retired; of a percentage at least one."""
    per_rack: Annotated[int, Field(ge=1, le=10_000)] | None = None
    attempts: Annotated[int, Field(ge=1, le=100)] = 3
    """At one machine, within `within_seconds`."""
    within_seconds: Annotated[int, Field(ge=60, le=30 * DAY)] = DAY

    def most(self, machines: int) -> int:
        """How many of so many."""
        if self.max_unavailable.endswith("%"):
            return max(1, machines * int(self.max_unavailable[:-1]) // 100)
        return int(self.max_unavailable)


class Slot(Strict):
    """Reserved for one machine. `boot`: the one that ran then, to which the order is bound; after `expires_ms` the
    order is dead."""

    machine: str
    owner: str
    boot: str
    since_ms: int
    expires_ms: int


class Standing(NamedTuple):
    """A machine that counts. `boot`: the one that it has now; `up`: it is in service by it."""

    rack: str
    boot: str
    up: bool


Fleet = Mapping[str, Standing]
"""Machines that are declared, enabled and not retired."""


class Reserved(NamedTuple):
    """What came of asking. `slot` None: nothing was reserved, and `why` says why not."""

    slot: Slot | None
    why: str = ""


def settled(slots: Iterable[Slot], fleet: Fleet, now_ms: int) -> list[Slot]:
    """Those of which nothing more is to come."""
    return [slot for slot in slots if _over(slot, fleet.get(slot.machine), now_ms)]


def _over(slot: Slot, standing: Standing | None, now_ms: int) -> bool:
    if standing is None:
        return True
    return standing.up and (standing.boot != slot.boot or now_ms >= slot.expires_ms)


def reserve(wanted: Slot, slots: Collection[Slot], tries: int, fleet: Fleet, budget: Budget, now_ms: int) -> Reserved:
    """A slot for `wanted`, or why there is none. `slots`: all that are reserved; `tries`: how often this machine was
    tried within the budget's time."""
    name, standing = wanted.machine, fleet.get(wanted.machine)
    if standing is None:
        return Reserved(None, f"{name} is not declared, disabled or retired")
    held = next((slot for slot in slots if slot.machine == name and not _over(slot, standing, now_ms)), None)
    if held is not None:
        return (
            Reserved(held) if held.owner == wanted.owner else Reserved(None, f"{name} is being seen to by {held.owner}")
        )
    if standing.boot != wanted.boot or now_ms >= wanted.expires_ms:
        return Reserved(None, f"{name} has another boot than the order names, or the order has expired")
    if tries >= budget.attempts:
        return Reserved(None, f"{name} was tried {tries} times within {budget.within_seconds // 3600} h")
    reserved = {slot.machine for slot in slots if not _over(slot, fleet.get(slot.machine), now_ms)}
    out = {machine for machine, each in fleet.items() if not each.up} | reserved | {name}
    if (most := budget.most(len(fleet))) < len(out):
        return Reserved(None, f"{most} machines may be out of service, and {_named(out - {name})} are")
    here = {machine for machine in out if fleet[machine].rack == standing.rack}
    if budget.per_rack is not None and len(here) > budget.per_rack:
        where = f"of rack {standing.rack}" if standing.rack else "without a rack"
        return Reserved(None, f"{budget.per_rack} {where} may be out of service, and {_named(here - {name})} are")
    return Reserved(wanted)


def _named(machines: Collection[str]) -> str:
    first = sorted(machines)[:_NAMED]
    return ", ".join(first) + (f" and {len(machines) - _NAMED} more" if len(machines) > _NAMED else "")


class Ledger(Protocol):
    """Every method raises StateUnavailableError where it cannot be told or written; then nothing was done."""

    def reserve(self, wanted: Slot, fleet: Fleet, budget: Budget, now_ms: int) -> Reserved:
        """In one transaction with all that others reserve. Given again it is the same slot."""
        ...

    def free(self, machine: str, owner: str) -> bool:
        """The owner gives it back, before its order was given; whether there was one."""
        ...

    def settle(self, fleet: Fleet, now_ms: int) -> list[Slot]:
        """Free those of which nothing more is to come; which these were."""
        ...

    def all(self) -> list[Slot]:
        """What is reserved, by machine."""
        ...
