"""Orders to drain and to reboot that replicas share: `netboot.lifecycle.drains.DrainStore` on objects of an API server
(`netboot.lifecycle.order_objects`), and on the file where they are known here.

What is decided goes by the object, and is written into it as it was read; what is asked goes by the file, which whoever
follows objects brings up to date (`netboot.controllers.orders`).
"""

import logging
from collections.abc import Collection, Sequence
from pathlib import Path

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.budget import slots
from netboot.lifecycle.drains import Change, Drain, End, decide, ended_by
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.order_objects import OrderObject, OrderObjects, spec_of
from netboot.logs import Trouble
from netboot.stores.drains import SqliteDrains
from netboot.stores.intents import SqliteIntents

log = logging.getLogger(__name__)

TRIES = 5


class SharedDrains(SqliteDrains):
    """Safe for threads and processes, and for those of other replicas."""

    def __init__(self, path: Path, objects: OrderObjects) -> None:
        super().__init__(path)
        self._objects, self._intents = objects, SqliteIntents(path)
        self._trouble = Trouble(log, "orders are not known here", "orders are known here again", logging.WARNING)

    def look(self, machine: str) -> None:
        found = self._objects.read(machine)
        if found is not None and (drain := found.drain) is not None:
            self._known([drain])

    def order(self, asked: Drain) -> Change:
        for _ in range(TRIES):
            found = self._objects.read(asked.machine)
            change = decide(_stands(found), asked)
            if not change.did:
                self._known([change.drain])
                return change
            if _written(self._objects, asked, found):
                self._known([*([ended_by(change.replaced, asked)] if change.replaced is not None else []), asked])
                return change
        raise _changed(asked.machine)

    def reserve(self, asked: Sequence[Drain], known: Collection[str]) -> list[Drain]:
        """Of a person's order that comes between the count and the writing nobody knows, as of one that comes after it:
        people's orders wait for no budget."""
        found = {each.name: each for each in self._objects.all()}
        there = [drain for each in found.values() if (drain := each.drain) is not None and drain.end is None]
        if not slots(there, self._intents.all(max((one.since_ms for one in asked), default=0))) <= set(known):
            return []
        taken = {drain.machine for drain in there} | {name for name, each in found.items() if each.spec is None}
        free = [one for one in asked if one.machine not in taken]
        written = [one for one in free if _written(self._objects, one, found.get(one.machine))]
        self._known(written)
        return written

    def finish(self, drain: str, end: End, words: str, now_ms: int) -> Drain | None:
        found = self.named([drain])
        if not found or found[0].end is not None:
            return None
        machine = found[0].machine
        for _ in range(TRIES):
            there = self._objects.read(machine) or self._named(drain)
            stands = _stands(there)
            if stands is None or stands.id != drain:
                self._known([last] if there is not None and (last := there.drain) is not None else [])
                return None
            over = stands.model_copy(update={"end": end, "ended_ms": now_ms, "words": words})
            if _written(self._objects, over, there):
                self._known([over.model_copy(update={"machine": machine})])
                return over.model_copy(update={"machine": machine})
        raise _changed(machine)

    def _named(self, drain: str) -> OrderObject | None:
        """By its id: its machine had another name when it was given."""
        return next((each for each in self._objects.all() if each.spec is not None and each.spec.id == drain), None)

    def _known(self, drains: Sequence[Drain]) -> None:
        """What was written there is so, whatever this disk says; who follows objects brings it here."""
        try:
            self.take(drains)
        except StateUnavailableError as error:
            self._trouble.note(str(error))
        else:
            self._trouble.note(None)


def _stands(found: OrderObject | None) -> Drain | None:
    """Raises ClusterUnavailableError: it cannot be told."""
    if found is not None and found.spec is None:
        raise ClusterUnavailableError(f"{found.fault}: correct it there; if it is deleted, the order is taken off")
    drain = found.drain if found is not None else None
    return drain if drain is not None and drain.end is None else None


def _written(objects: OrderObjects, drain: Drain, before: OrderObject | None) -> bool:
    """Whether it is; not, where it is another one by now."""
    try:
        objects.write(drain.machine, spec_of(drain), before)
    except ConflictError:
        return False
    return True


def _changed(machine: str) -> ClusterUnavailableError:
    return ClusterUnavailableError(f"the order of {machine} is changed by others all the time: try again")
