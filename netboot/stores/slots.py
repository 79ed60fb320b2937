"""The ledger, in `data/intents.db`: `netboot.lifecycle.slots.Ledger`."""

import sqlite3
from pathlib import Path

from netboot.lifecycle.slots import Budget, Fleet, Reserved, Slot, reserve, settled
from netboot.stores.intents import opened

_COLUMNS = tuple(Slot.model_fields)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM slots ORDER BY machine"  # noqa: S608 - our own names of columns
_INSERT = f"INSERT OR REPLACE INTO slots ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608
TRIES_KEPT_MS = 30 * 86_400_000
"""The longest time of a budget."""


class SqliteLedger:
    """Safe for threads and processes: every change is one transaction that reads, decides and writes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def reserve(self, wanted: Slot, fleet: Fleet, budget: Budget, now_ms: int) -> Reserved:
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            slots = _read(db)
            found = reserve(wanted, slots, _tries(db, wanted.machine, budget, now_ms), fleet, budget, now_ms)
            if found.slot is wanted:
                db.execute(_INSERT, [getattr(wanted, column) for column in _COLUMNS])
                db.execute("INSERT INTO tries (machine, at_ms) VALUES (?, ?)", (wanted.machine, now_ms))
                db.execute("DELETE FROM tries WHERE at_ms < ?", (now_ms - TRIES_KEPT_MS,))
            db.execute("COMMIT")
        return found

    def free(self, machine: str, owner: str) -> bool:
        with opened(self._path, "rw") as db:
            done = db.execute("DELETE FROM slots WHERE machine = ? AND owner = ?", (machine, owner))
            return done.rowcount > 0

    def settle(self, fleet: Fleet, now_ms: int) -> list[Slot]:
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            over = settled(_read(db), fleet, now_ms)
            db.executemany("DELETE FROM slots WHERE machine = ?", [(slot.machine,) for slot in over])
            db.execute("COMMIT")
        return over

    def all(self) -> list[Slot]:
        with opened(self._path, "ro") as db:
            return _read(db)


def _read(db: sqlite3.Connection) -> list[Slot]:
    return [Slot.model_validate(dict(zip(_COLUMNS, row, strict=True))) for row in db.execute(_SELECT)]


def _tries(db: sqlite3.Connection, machine: str, budget: Budget, now_ms: int) -> int:
    since = now_ms - budget.within_seconds * 1000
    tries: int = db.execute("SELECT count(*) FROM tries WHERE machine = ? AND at_ms > ?", (machine, since)).fetchone()[
        0
    ]
    return tries
