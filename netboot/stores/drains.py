"""What was ordered that takes Pods away, in `data/intents.db`: `netboot.lifecycle.drains.DrainStore`."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from netboot.lifecycle.budget import slots
from netboot.lifecycle.drains import Change, Drain, End, State, decide, ended_by
from netboot.stores import intents
from netboot.stores.intents import opened

KEPT = 100
"""Of each machine."""
_COLUMNS = tuple(Drain.model_fields)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM drains"  # noqa: S608 - our own names of columns
_INSERT = f"INSERT INTO drains ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608
_END = "UPDATE drains SET end = ?, ended_ms = ?, words = ? WHERE id = ? AND end IS NULL"
_FORGET = (
    "DELETE FROM drains WHERE machine = :machine AND end IS NOT NULL AND rowid <= "
    "(SELECT rowid FROM drains WHERE machine = :machine ORDER BY rowid DESC LIMIT 1 OFFSET :kept)"
)


class SqliteDrains:
    """Safe for threads and processes: every change is one transaction that reads, decides and writes."""

    shared = False

    def __init__(self, path: Path) -> None:
        self._path = path

    def standing(self) -> list[Drain]:
        with opened(self._path, "ro") as db:
            return standing(db)

    def of(self, machine: str, limit: int) -> list[Drain]:
        with opened(self._path, "ro") as db:
            return _read(db, f"{_SELECT} WHERE machine = ? ORDER BY rowid DESC LIMIT ?", machine, limit)

    def last(self, owner: str, machines: Collection[str]) -> Mapping[str, Drain]:
        newest = "SELECT max(rowid) FROM drains WHERE machine IN (SELECT value FROM json_each(?)) AND owner = ?"
        query = f"{_SELECT} WHERE rowid IN ({newest} GROUP BY machine)"
        with opened(self._path, "ro") as db:
            return {one.machine: one for one in _read(db, query, json.dumps(list(machines)), owner)}

    def stands(self, machine: str) -> Drain | None:
        with opened(self._path, "ro") as db:
            return standing_of(db, machine)

    def elsewhere(self) -> Mapping[str, State]:
        return {}

    def order(self, asked: Drain) -> Change:
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            change = carry_out(db, asked)
            db.execute("COMMIT")  # an error before it closes the connection, which rolls back
        return change

    def reserve(self, asked: Sequence[Drain], known: Collection[str]) -> list[Drain]:
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            there = standing(db)
            if not slots(there, intents.standing(db, max((one.since_ms for one in asked), default=0))) <= set(known):
                return []
            taken = {one.machine for one in there}
            free = [one for one in asked if one.machine not in taken]
            for one in free:
                _insert(db, one)
            db.execute("COMMIT")
        return free

    def finish(self, drain: str, end: End, words: str, now_ms: int) -> Drain | None:
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            ended = end_order(db, drain, end, words, now_ms)
            db.execute("COMMIT")
        return ended


def carry_out(db: sqlite3.Connection, asked: Drain) -> Change:
    """Read, decide and write, in the transaction that is open."""
    change = decide(standing_of(db, asked.machine), asked)
    if change.did:
        if change.replaced is not None:
            _replace(db, change.replaced, asked)
        _insert(db, asked)
    return change


def take(db: sqlite3.Connection, said: Drain, before: str) -> str:
    """Write down what is said to be so of an order, whatever was known of it, in the transaction that is open. It takes
    the place of the one that stands; an order that has ended takes that of `before` alone, the id of the one of which
    this was said until now. The id of that whose place it took; "": of none."""
    stands = standing_of(db, said.machine)
    replaced = ""
    if stands is not None and stands.id != said.id and (said.end is None or stands.id == before):
        _replace(db, stands, said)
        replaced = stands.id
    if said.id in named(db, [said.id]):
        ended = "UPDATE drains SET machine = ?, end = ?, ended_ms = ?, words = ? WHERE id = ?"
        db.execute(ended, (said.machine, said.end, said.ended_ms, said.words, said.id))
    else:
        _insert(db, said)
    return replaced


def end_order(db: sqlite3.Connection, drain: str, how: End, words: str, now_ms: int) -> Drain | None:
    """One has ended so, in the transaction that is open; None: it does not stand."""
    done = db.execute(_END, (how, now_ms, words, drain)).rowcount > 0
    return named(db, [drain])[drain] if done else None


def _replace(db: sqlite3.Connection, stands: Drain, asked: Drain) -> None:
    over = ended_by(stands, asked)
    db.execute(_END, (over.end, over.ended_ms, over.words, over.id))


def standing_of(db: sqlite3.Connection, machine: str) -> Drain | None:
    """What stands of a machine, in the transaction that is open."""
    found = _read(db, f"{_SELECT} WHERE machine = ? AND end IS NULL", machine)
    return found[0] if found else None


def stand(db: sqlite3.Connection) -> set[str]:
    """The ids of those that stand, in the transaction that is open."""
    return {row[0] for row in db.execute("SELECT id FROM drains WHERE end IS NULL")}


def standing(db: sqlite3.Connection) -> list[Drain]:
    """All that stand, in the transaction that is open."""
    return _read(db, f"{_SELECT} WHERE end IS NULL ORDER BY machine")


def named(db: sqlite3.Connection, drains: Iterable[str]) -> dict[str, Drain]:
    """These, by their ids; one that is longer ago than is kept is not in it."""
    return {each.id: each for drain in drains for each in _read(db, f"{_SELECT} WHERE id = ?", drain)}


def _insert(db: sqlite3.Connection, drain: Drain) -> None:
    db.execute(_INSERT, [getattr(drain, column) for column in _COLUMNS])
    db.execute(_FORGET, {"machine": drain.machine, "kept": KEPT})


def _read(db: sqlite3.Connection, query: str, *values: object) -> list[Drain]:
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in db.execute(query, values).fetchall()]
    return [Drain.model_validate(row | {name: bool(row[name]) for name in ("bare", "local")}) for row in rows]
