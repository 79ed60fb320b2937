"""Orders to drain and to reboot that replicas share: `netboot.lifecycle.drains.DrainStore` on objects of an API server
(`netboot.lifecycle.order_objects`), and on the file where they are known here.

What stands of a machine is what its object says. Of that the file has what this replica wrote or asked itself, and what
was read of all objects, some time ago (`follow`): of two words on one object the one of the higher generation is the
newer one (https://kubernetes.io/docs/reference/using-api/api-concepts/); whether an object is gone, or is another of
that name, what was read says once it is surely of after what was written here. What is asked goes by the file.
"""

import logging
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.budget import slots
from netboot.lifecycle.drains import Change, Drain, End, decide
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.order_objects import OrderObject, OrderObjects, spec_of
from netboot.logs import Trouble
from netboot.stores.drains import SqliteDrains, end_order, named, standing, standing_of, take
from netboot.stores.intents import SqliteIntents, opened

log = logging.getLogger(__name__)

TRIES = 5
LATE_MS = 60_000
"""What was read of all objects lacks nothing that was written so long before, by the clock of one host."""
GONE = "its object was deleted"
_KNOW = "INSERT OR REPLACE INTO orders (name, uid, generation, drain, written_ms) VALUES (?, ?, ?, ?, ?)"
_AS_OF = "INSERT OR REPLACE INTO orders_followed (id, as_of_ms) VALUES (1, ?)"


class _Known(NamedTuple):
    """What an object was known to say. `drain`: the id of its order; `written_ms`: when that was written or asked here,
    by this host's clock; 0: it was in what was read of all."""

    name: str
    uid: str
    generation: int
    drain: str
    written_ms: int


class SharedDrains(SqliteDrains):
    """Safe for threads and processes, and for those of other replicas. `present()`: former name → the name of now, of
    machines of the inventory in force; an object has the name that its machine had."""

    def __init__(
        self,
        path: Path,
        objects: OrderObjects,
        present: Callable[[], Mapping[str, str]],
        now_ms: Callable[[], int],
        replica: str,
    ) -> None:
        super().__init__(path)
        self.replica = replica
        self._objects, self._intents, self._present = objects, SqliteIntents(path), present
        self._now_ms = now_ms
        self._trouble = Trouble(log, "orders are not known here", "orders are known here again", logging.WARNING)

    def stands(self, machine: str) -> Drain | None:
        found = self._find(machine)
        if found is not None:
            _said(found)
            self._take([found])
        return super().stands(machine)

    def order(self, asked: Drain) -> Change:
        for _ in range(TRIES):
            found = self._find(asked.machine)
            said = _said(found) if found is not None else self._alone(asked.machine)
            stands = said.model_copy(update={"machine": asked.machine}) if said is not None else None
            change = decide(stands if stands is not None and stands.end is None else None, asked)
            written = self._written(asked, found) if change.did else found
            if written is not None:
                self._note([written])
            if written is not None or not change.did:
                return change
        raise _changed(asked.machine)

    def reserve(self, asked: Sequence[Drain], known: Collection[str]) -> list[Drain]:
        """Of an order that comes between the count and the writing nobody knows, as of a person's that comes after it:
        a budget holds within a replica, and among replicas where one of them leads who asks."""
        present = self._present()
        found = {present.get(each.name, each.name): each for each in self._objects.all()}
        drains = [_of_now(each.drain, present) for each in found.values() if each.drain is not None]
        there = [*(each for each in drains if each.end is None), *self._alones()]
        if not slots(there, self._intents.all(max((one.since_ms for one in asked), default=0))) <= set(known):
            return []
        taken = {drain.machine for drain in there} | {name for name, each in found.items() if each.drain is None}
        written: dict[str, OrderObject] = {}
        try:
            for one in asked:
                if one.machine not in taken and (made := self._written(one, found.get(one.machine))) is not None:
                    written[one.id] = made
        finally:
            self._note(list(written.values()))
        return [one for one in asked if one.id in written]

    def finish(self, drain: str, end: End, words: str, now_ms: int) -> Drain | None:
        for _ in range(TRIES):
            with opened(self._path, "ro") as db:
                stands = named(db, [drain]).get(drain)
                object_ = next((each for each in _known(db).values() if each.drain == drain), None)
            if stands is None or stands.end is not None:
                return None
            there = self._objects.read(object_.name) if object_ is not None else None
            if there is None:  # it was given when orders were none, or somebody deleted it
                return super().finish(drain, end, words, now_ms)
            said = _said(there)
            if said.id != drain or said.end is not None:
                self._note([there])
                return None
            over = stands.model_copy(update={"end": end, "ended_ms": now_ms, "words": words})
            if (written := self._written(over, there)) is not None:
                self._note([written])
                return over
        raise _changed(drain)

    def follow(self, objects: Sequence[OrderObject] | None, as_of_ms: int) -> tuple[list[Drain], bool]:
        """What was read of all objects, as they were at that moment at the earliest, by this host's clock; None: what
        was read last is of that moment, too. Returns orders that have ended, for their objects are gone; and whether
        there are objects of which it is not believed yet.

        Raises:
            StateUnavailableError.
        """
        gone: list[Drain] = []
        later, present = False, self._present()
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            if objects is not None:
                known, there = _known(db), {each.name: each for each in objects}
                # by its own name last: of several objects of one machine that one is believed
                for each in sorted(objects, key=lambda each: (each.name not in present, each.name)):
                    was = known.get(each.name)
                    if was is not None and was.uid != each.uid and was.written_ms > as_of_ms - LATE_MS:
                        later = True
                    else:
                        _take_one(db, each, was, present, 0)
                for name, was in known.items():
                    if name not in there and was.written_ms > as_of_ms - LATE_MS:
                        later = True
                    elif name not in there:
                        ended = end_order(db, was.drain, "taken-off", GONE, self._now_ms())
                        gone += [ended] if ended is not None else []
                        db.execute("DELETE FROM orders WHERE name = ?", (name,))
            db.execute(_AS_OF, (as_of_ms,))
            db.execute("COMMIT")
        return gone, later

    def _find(self, machine: str) -> OrderObject | None:
        """Its object: of its name, else of one that it had."""
        names = [machine, *sorted(name for name, now in self._present().items() if now == machine)]
        return next((found for name in names if (found := self._objects.read(name)) is not None), None)

    def _alone(self, machine: str) -> Drain | None:
        """What stands of a machine and never was an object: it was given before orders were."""
        with opened(self._path, "ro") as db:
            stands = standing_of(db, machine)
            known = {each.drain for each in _known(db).values()}
        return stands if stands is not None and stands.id not in known else None

    def _alones(self) -> list[Drain]:
        with opened(self._path, "ro") as db:
            known = {each.drain for each in _known(db).values()}
            return [each for each in standing(db) if each.id not in known]

    def _written(self, drain: Drain, before: OrderObject | None) -> OrderObject | None:
        """The object that says so; None: it is another one by now. Whether a write was done that was not answered is
        asked, once."""
        name = before.name if before is not None else drain.machine
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
            self._take(objects)
        except StateUnavailableError as error:
            self._trouble.note(str(error))
        else:
            self._trouble.note(None)

    def _take(self, objects: Sequence[OrderObject]) -> None:
        now_ms, present = self._now_ms(), self._present()
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            known = _known(db)
            for each in objects:
                _take_one(db, each, known.get(each.name), present, now_ms)
            db.execute("COMMIT")


def _take_one(
    db: sqlite3.Connection, said: OrderObject, was: _Known | None, present: Mapping[str, str], written_ms: int
) -> None:
    """Write down what an object says, unless something newer is known of it. `written_ms`: as in `_Known`."""
    if said.drain is None or (was is not None and was.uid == said.uid and said.generation < was.generation):
        return
    if was is None or (was.uid, was.generation) != (said.uid, said.generation):
        take(db, _of_now(said.drain, present))
    elif written_ms or not was.written_ms:
        return  # nothing new
    db.execute(_KNOW, _Known(said.name, said.uid, said.generation, said.drain.id, written_ms))


def _of_now(drain: Drain, present: Mapping[str, str]) -> Drain:
    name = present.get(drain.machine, drain.machine)
    return drain if name == drain.machine else drain.model_copy(update={"machine": name})


def as_of_ms(path: Path) -> int:
    """Of when what is known of all objects is; 0: nothing was read of them. Raises StateUnavailableError."""
    with opened(path, "ro") as db:
        row = db.execute("SELECT as_of_ms FROM orders_followed").fetchone()
    return int(row[0]) if row is not None else 0


def _known(db: sqlite3.Connection) -> dict[str, _Known]:
    """What objects were known to say, by their names, in the transaction that is open."""
    rows = db.execute("SELECT name, uid, generation, drain, written_ms FROM orders").fetchall()
    return {row[0]: _Known(*row) for row in rows}


def _said(found: OrderObject) -> Drain:
    """Raises ClusterUnavailableError: it cannot be told."""
    if found.drain is None:
        raise ClusterUnavailableError(f"{found.fault}: correct it there; if it is deleted, the order is taken off")
    return found.drain


def _changed(what: str) -> ClusterUnavailableError:
    return ClusterUnavailableError(f"the order of {what} is changed by others all the time: try again")
