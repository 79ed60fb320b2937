"""Orders to drain and to reboot that replicas share: `netboot.lifecycle.drains.DrainStore` on objects of an API server
(`netboot.lifecycle.order_objects`), and on the file where they are known here.

What stands of a machine is what its object says. Of that the file has what this replica wrote or asked itself, and what
was read of all objects, some time ago (`follow`). Of two words on one object the one of the higher generation is the
newer one (https://kubernetes.io/docs/reference/using-api/api-concepts/), unless a backup of the API server was restored
in between: what was read says so, and whether an object is gone or another of that name, once it is surely of after
what was written here. What is asked goes by the file.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.budget import slots
from netboot.lifecycle.drains import AT_ONCE_SECONDS, Change, Drain, End, State, decide
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.order_objects import OrderObject, OrderObjects, apart, of_two, spec_of
from netboot.logs import Trouble
from netboot.stores.drains import SqliteDrains, named, standing_of
from netboot.stores.intents import SqliteIntents, opened
from netboot.stores.known_orders import GONE, KnownOrders, known_of, states_of

log = logging.getLogger(__name__)

TRIES = 5
GOING = "order/{} was deleted, and waits for its finalizers: once these are taken off, a new order can be given"


class SharedDrains(SqliteDrains):
    """Safe for threads and processes, and for those of other replicas. `present()`: former name → the name of now, of
    machines of the inventory in force; an object has the name that its machine had."""

    shared = True

    def __init__(
        self,
        path: Path,
        objects: OrderObjects,
        present: Callable[[], Mapping[str, str]],
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(path)
        self._objects, self._intents, self._present = objects, SqliteIntents(path), present
        self.now_ms, self._monotonic = now_ms, monotonic
        self._trouble = Trouble(log, "orders are not known here", "orders are known here again", logging.WARNING)

    def stands(self, machine: str) -> Drain | None:
        found = self._find(machine)
        if found is not None:
            _said(found)
            self._take([found], self.now_ms())
        return super().stands(machine)

    def elsewhere(self) -> Mapping[str, State]:
        with opened(self._path, "ro") as db:
            return states_of(db)

    def order(self, asked: Drain) -> Change:
        for _ in range(TRIES):
            found = self._find(asked.machine)
            if found is not None and found.going:
                raise ClusterUnavailableError(GOING.format(found.name))
            said = _said(found) if found is not None else None
            if said is None or said.end is not None:
                stands = self._alone(asked.machine)
            else:
                stands = said.model_copy(update={"machine": asked.machine})
            change = decide(stands, asked)
            if not change.did:
                self._note([found] if found is not None else [])
                return change
            if (written := self._written(asked, found)) is not None:
                self._note([written])
                return change
        raise _changed(asked.machine)

    def reserve(self, asked: Sequence[Drain], known: Collection[str]) -> list[Drain]:
        """Of an order that comes between the count and the writing nobody knows, as of a person's that comes after it:
        a budget holds within a replica, and among replicas where one of them leads who asks."""
        as_of_ms, present = self.now_ms(), self._present()
        found = {present.get(each.name, each.name): each for each in _by_trust(apart(self._objects.all()), present)}
        self._take([each for each in found.values() if each.drain is not None], as_of_ms)
        there = {each.drain.id: each.drain for each in found.values() if each.drain is not None and not each.drain.end}
        standing = list((there | {one.id: one for one in self.standing()}).values())
        if not slots(standing, self._intents.all(max((one.since_ms for one in asked), default=0))) <= set(known):
            return []
        taken = {one.machine for one in standing}
        taken |= {name for name, each in found.items() if each.drain is None or each.drain.end is None or each.going}
        written: dict[str, OrderObject] = {}
        until = self._monotonic() + AT_ONCE_SECONDS
        try:
            for one in asked:
                if self._monotonic() >= until:
                    break
                if one.machine not in taken and (made := self._written(one, found.get(one.machine))) is not None:
                    written[one.id] = made
        finally:
            self._note(list(written.values()))
        return [one for one in asked if one.id in written]

    def finish(self, drain: str, end: End, words: str, now_ms: int) -> Drain | None:
        for _ in range(TRIES):
            with opened(self._path, "ro") as db:
                stands = named(db, [drain]).get(drain)
                known = next((each for each in known_of(db).values() if each.drain == drain), None)
            if stands is None or stands.end is not None:
                return None
            if known is None:  # it was given when orders were none
                return super().finish(drain, end, words, now_ms)
            over = stands.model_copy(update={"end": end, "ended_ms": now_ms, "words": words})
            there = self._objects.read(known.name)
            if there is not None and ((said := _said(there)).id != drain or said.end is not None):
                self._note([there])
                return None
            # where its object is gone, with its definition, say, another one tells all who have the order
            if (written := self._written(over, there, known.name)) is not None:
                self._note([written])
                return over
        raise _changed(drain)

    def follow(self, objects: Sequence[OrderObject], as_of_ms: int) -> list[str]:
        """What was read of all objects (`apart`), as they were at that moment at the earliest, by this host's clock;
        which of them are not believed, or are none, in words.

        Raises:
            StateUnavailableError.
        """
        present = self._present()
        believed = {present.get(each.name, each.name): each for each in _by_trust(objects, present) if each.drain}
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            known = KnownOrders(db, present)
            gone = known.without({each.name for each in objects}, as_of_ms, self.now_ms())
            faults = [known.take(each, as_of_ms, listed=True) for each in believed.values()]
            known.as_of(as_of_ms)
            db.execute("COMMIT")
        for drain in gone:
            fields = {"machine": drain.machine, "boot": drain.boot, "order": drain.id}
            log.info("%s of %s has ended: %s", drain.what, drain.machine, GONE, extra={"fields": fields})
        return [*(each.fault for each in objects if each.drain is None), *filter(None, faults)]

    def _find(self, machine: str) -> OrderObject | None:
        """Its object: of its name, else of one that it had."""
        names = [machine, *sorted(name for name, now in self._present().items() if now == machine)]
        found = next((found for name in names if (found := self._objects.read(name)) is not None), None)
        if found is None or found.drain is None:
            return found
        with opened(self._path, "ro") as db:
            copied = any(each.drain == found.drain.id and each.name != found.name for each in known_of(db).values())
        return of_two(found) if copied else found

    def _alone(self, machine: str) -> Drain | None:
        """What stands of a machine and never was an object: it was given before orders were."""
        with opened(self._path, "ro") as db:
            stands = standing_of(db, machine)
            known = {each.drain for each in known_of(db).values()}
        return stands if stands is not None and stands.id not in known else None

    def _written(self, drain: Drain, before: OrderObject | None, name: str = "") -> OrderObject | None:
        """The object that says so, of this name where there is none before; None: it is another one by now. Whether a
        write was done that was not answered is asked, once."""
        name = before.name if before is not None else name or drain.machine
        spec = spec_of(drain)
        try:
            return self._objects.write(name, spec, before)
        except ConflictError:
            return None
        except ClusterUnavailableError:
            there = self._objects.read(name)
            if there is None or there.drain is None or spec_of(there.drain) != spec:
                raise
            return there

    def _note(self, objects: Sequence[OrderObject]) -> None:
        """What was written there is so, whatever this disk says; who follows objects brings it here."""
        try:
            self._take(objects, self.now_ms())
        except StateUnavailableError as error:
            self._trouble.note(str(error))
        else:
            self._trouble.note(None)

    def _take(self, objects: Sequence[OrderObject], as_of_ms: int) -> None:
        """What was read then, or written."""
        present = self._present()
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            known = KnownOrders(db, present)
            for each in objects:
                known.take(each, as_of_ms, listed=False)
            db.execute("COMMIT")


def _by_trust(objects: Sequence[OrderObject], present: Mapping[str, str]) -> list[OrderObject]:
    """Of several objects of one machine the last is believed: that of its own name."""
    return sorted(objects, key=lambda each: (each.name not in present, each.name))


def _said(found: OrderObject) -> Drain:
    """Raises ClusterUnavailableError: it cannot be told."""
    if found.drain is None:
        raise ClusterUnavailableError(f"{found.fault}: correct it there; if it is deleted, the order is taken off")
    return found.drain


def _changed(what: str) -> ClusterUnavailableError:
    return ClusterUnavailableError(f"the order of {what} is changed by others all the time: try again")
