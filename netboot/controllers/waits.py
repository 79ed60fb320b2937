"""For how long something has been so, counted while it could be seen."""

from collections.abc import Collection

from netboot.lifecycle.conditions import Ailment
from netboot.lifecycle.remedies import Books
from netboot.lifecycle.seen_time import SeenTime


class Waits:
    """Of machines. They begin anew with the process: whoever waits by them only acts later."""

    def __init__(self) -> None:
        self._clocks: SeenTime | None = None
        self._begun: dict[str, tuple[object, int]] = {}
        """Of each machine what its wait is of, and what its clock showed when that began."""

    def look(self, machines: Collection[str], seeing: Collection[str], up_ms: int) -> None:
        """These wait, and no others; their clocks go on in the places `seeing`."""
        if self._clocks is None:
            self._clocks = SeenTime({}, up_ms)
        self._clocks.look(seeing, up_ms)
        self._begun = {name: wait for name, wait in self._begun.items() if name in machines}

    def waited(self, machine: str, of: object, place: str) -> int:
        """Milliseconds for which it has waited; another `of` is another wait."""
        shows = self._clocks.values.get(place, 0) if self._clocks is not None else 0
        known, since = self._begun.get(machine, (None, 0))
        if known != of:
            since = shows
            self._begun[machine] = (of, since)
        return shows - since


def wait_of(machine: str, ailment: Ailment, books: Books) -> object:
    """What a wait for a remedy is of: one that was well meanwhile, or was given one, waits anew."""
    last = max((each.id for each in books.taken if each.machine == machine), default=0)
    in_hand = machine in books.drains or machine in books.intents
    return ailment.reason, ailment.boot, ailment.since_ms, last, in_hand
