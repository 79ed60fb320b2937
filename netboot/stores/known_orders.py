"""What objects of orders were known to say, in `data/intents.db`, beside the orders themselves: tables of
`netboot.stores.shared_drains`."""

import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from netboot.clock import rfc3339
from netboot.lifecycle.drains import Drain, State
from netboot.lifecycle.order_objects import OrderObject, of_two
from netboot.stores.drains import end_order, stand, take
from netboot.stores.intents import opened

LATE_MS = 60_000
"""What was read of all objects lacks nothing that was written so long before, by the clock of one host."""
UNTOLD_SECONDS = 180
"""So old what other replicas did may be for who acts by it: an API server says each minute that nothing has changed."""
GONE = "its object was deleted"


class Known(NamedTuple):
    """What an object was known to say. `drain`: the id of its order; `written_ms`: when that was written or asked here,
    by this host's clock; 0: it was in what was read of all. `state`: how far it was, as JSON; None: it said nothing."""

    name: str
    uid: str
    generation: int
    drain: str
    written_ms: int
    state: str | None

    @property
    def word(self) -> tuple[str, int, str]:
        """Which of an object's words it is."""
        return self.uid, self.generation, self.drain


_COLUMNS = ", ".join(Known._fields)
_SELECT = f"SELECT {_COLUMNS} FROM orders"  # noqa: S608 - our own names of columns
_KNOW = f"INSERT OR REPLACE INTO orders ({_COLUMNS}) VALUES ({', '.join('?' * len(Known._fields))})"  # noqa: S608
_STATES = """SELECT drains.machine, orders.state FROM orders JOIN drains ON drains.id = orders.drain
WHERE drains.end IS NULL AND orders.state IS NOT NULL"""
_AS_OF = "INSERT OR REPLACE INTO orders_followed (id, as_of_ms) VALUES (1, ?)"


def known_of(db: sqlite3.Connection) -> dict[str, Known]:
    """By the names of objects, in the transaction that is open."""
    return {row[0]: Known(*row) for row in db.execute(_SELECT)}


def states_of(db: sqlite3.Connection) -> dict[str, State]:
    """Machine → how far what stands of it is, in the transaction that is open."""
    return {machine: State.model_validate_json(state) for machine, state in db.execute(_STATES)}


def as_of_ms(path: Path) -> int:
    """Of when what is known of all objects is; 0: nothing was read of them. Raises StateUnavailableError."""
    with opened(path, "ro") as db:
        row = db.execute("SELECT as_of_ms FROM orders_followed").fetchone()
    return int(row[0]) if row is not None else 0


class KnownOrders:
    """Writes down what objects say, in the transaction that is open. `present`: former name → the name of now, of
    machines."""

    def __init__(self, db: sqlite3.Connection, present: Mapping[str, str]) -> None:
        self._db, self._present = db, present
        self._known, self._stand = known_of(db), stand(db)
        self._of = {each.drain: each.name for each in self._known.values()}

    def as_of(self, as_of_ms: int) -> None:
        """All was read at that moment at the earliest."""
        self._db.execute(_AS_OF, (as_of_ms,))

    def without(self, there: Collection[str], as_of_ms: int, now_ms: int) -> list[Drain]:
        """Orders of objects that are not `there` have ended, where that is surely of after what was written here; these
        orders."""
        gone = [each for each in self._known.values() if each.name not in there and settled(each, as_of_ms)]
        for each in gone:
            self._db.execute("DELETE FROM orders WHERE name = ?", (each.name,))
            del self._known[each.name], self._of[each.drain]
        ended = [end_order(self._db, each.drain, "taken-off", GONE, now_ms) for each in gone]
        self._stand -= {each.drain for each in gone}
        return [each for each in ended if each is not None]

    def take(self, said: OrderObject, as_of_ms: int, *, listed: bool) -> str:
        """What an object says as of then: in what was read of all objects, or just read or written here. Returns why it
        is not believed; "": it is, or is older than what is known."""
        drain, was = said.drain, self._known.get(said.name)
        if drain is None or older(said, was, as_of_ms, listed=listed):
            return ""
        if self._of.get(drain.id, said.name) != said.name or self._of_another(drain):
            return of_two(said).fault
        state = said.state.model_dump_json() if said.state is not None else None
        now = Known(said.name, said.uid, said.generation, drain.id, 0 if listed else as_of_ms, state)
        if was is not None and now.word == was.word:  # what all are known to say stays so; the rest is as old as it was
            now = now._replace(written_ms=0 if listed else was.written_ms)
        if was is None or now.word != was.word or (drain.id in self._stand) != (drain.end is None):
            self._take(drain, was.drain if was is not None else "")
        if now != was:
            self._db.execute(_KNOW, now)
            self._known[said.name] = now
            self._of[drain.id] = said.name
        return ""

    def _of_another(self, drain: Drain) -> bool:
        """Whether it is an order of another machine, as that of a copy is: a machine that was renamed is none."""
        row = self._db.execute("SELECT machine FROM drains WHERE id = ?", (drain.id,)).fetchone()
        machine = self._present.get(drain.machine, drain.machine)
        return row is not None and self._present.get(row[0], row[0]) not in (machine, drain.machine)

    def _take(self, drain: Drain, before: str) -> None:
        machine = self._present.get(drain.machine, drain.machine)
        self._stand.discard(take(self._db, drain.model_copy(update={"machine": machine}), before))
        if drain.end is None:
            self._stand.add(drain.id)
        else:
            self._stand.discard(drain.id)


def untold(what: str, as_of_ms: int, now_ms: int) -> str:
    """Why it cannot be told what other replicas did, in words; "": it can. `what`: that; `as_of_ms`: of when what is
    known is, 0: nothing was read yet."""
    if abs(now_ms - as_of_ms) <= UNTOLD_SECONDS * 1000:
        return ""
    see = "see `resources` and `rollouts` of `netboot doctor`"
    if as_of_ms > now_ms:
        return f"{what} is of {rfc3339(as_of_ms, 'seconds')}, and it is not so late yet: check NTP: {see}"
    when = f"was read {(now_ms - as_of_ms) // 1000} s ago" if as_of_ms else "has not been read yet"
    return f"{what} {when}: {see}"


class _Word(Protocol):
    """Of an object: which one it is, and how often what it says had changed."""

    @property
    def uid(self) -> str: ...

    @property
    def generation(self) -> int: ...


class _KnownWord(_Word, Protocol):
    """One that is known here; `written_ms`: see `Known`."""

    @property
    def written_ms(self) -> int: ...


def settled(was: _KnownWord, as_of_ms: int) -> bool:
    """Whether what was read as of then is surely of after what was written here."""
    return was.written_ms <= as_of_ms - LATE_MS


def older(said: _Word, was: _KnownWord | None, as_of_ms: int, *, listed: bool) -> bool:
    """Whether it may be an older word than what is known. Of one object the lower generation is, but where a backup of
    the API server was restored; which of two objects of one name is there now says who reads that one. `listed`: it was
    in what was read of all."""
    if was is None or settled(was, as_of_ms):
        return False
    return said.generation < was.generation if said.uid == was.uid else listed
