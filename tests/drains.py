"""Orders to drain and to reboot, and where they are kept in memory."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from netboot.lifecycle.budget import slots
from netboot.lifecycle.drains import Change, Drain, End, State, decide
from netboot.lifecycle.errors import StateUnavailableError

BOOT = "018bcfe5-6800-8fff-bfff-c8dd6b13e782"
START = 1_767_225_600_000
MINUTE = 60_000


def drain(machine: str, name: str, what: str = "drain", **more: Any) -> Drain:
    """An order of half an hour."""
    values = {
        "id": name,
        "machine": machine,
        "what": what,
        "boot": BOOT,
        "who": "alice",
        "reason": "DIMM 4",
        "since_ms": START,
        "deadline_ms": START + 30 * MINUTE,
    }
    return Drain.model_validate(values | more)


class MemoryDrains:
    """`netboot.lifecycle.drains.DrainStore`. `broken`: which stand cannot be told."""

    shared = False

    def __init__(self) -> None:
        self._all: list[Drain] = []
        self.broken = False
        self.states: dict[str, State] = {}
        """As other replicas say them."""

    def standing(self) -> list[Drain]:
        if self.broken:
            raise StateUnavailableError("gone")
        return sorted((one for one in self._all if one.end is None), key=lambda one: one.machine)

    def of(self, machine: str, limit: int) -> list[Drain]:
        return [one for one in reversed(self._all) if one.machine == machine][:limit]

    def last(self, owner: str, machines: Collection[str]) -> Mapping[str, Drain]:
        return {one.machine: one for one in self._all if one.owner == owner and one.machine in machines}

    def stands(self, machine: str) -> Drain | None:
        return next((one for one in self.standing() if one.machine == machine), None)

    def elsewhere(self) -> Mapping[str, State]:
        return self.states

    def reserve(self, asked: Sequence[Drain], known: Collection[str]) -> list[Drain]:
        standing = {one.machine for one in self.standing()}
        if not slots(self.standing(), ()) <= set(known):
            return []
        free = [one for one in asked if one.machine not in standing]
        self._all += free
        return free

    def order(self, asked: Drain) -> Change:
        change = decide(self.stands(asked.machine), asked)
        if change.did:
            if change.replaced is not None:
                words = f"{asked.what} was ordered by {asked.who}"
                self.finish(change.replaced.id, "replaced", words, asked.since_ms)
            self._all.append(asked)
        return change

    def finish(self, drain: str, end: End, words: str, now_ms: int) -> Drain | None:
        for place, one in enumerate(self._all):
            if one.id == drain and one.end is None:
                self._all[place] = one.model_copy(update={"end": end, "words": words, "ended_ms": now_ms})
                return self._all[place]
        return None
