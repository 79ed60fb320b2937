"""Remedies in `data/intents.db`, beside what they order: `netboot.lifecycle.remedies.RemedyStore`."""

import secrets
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from netboot.lifecycle.drains import Drain
from netboot.lifecycle.errors import NoSuchRemedyError, StateUnavailableError
from netboot.lifecycle.intents import LONGEST_REASON, PutOn, by_machine
from netboot.lifecycle.remedies import DAY_MS, WHO, Books, End, Pause, Remedy, Taking
from netboot.lifecycle.transitions import Mark
from netboot.stores import drains, intents
from netboot.stores.intents import opened

KEPT = 50
"""Of each machine, taken and withheld ones."""
DRAIN_MS = 1_800_000
"""By when a machine has to be drained: what an operator has who does not say (docs/drain.md)."""
_COLUMNS = tuple(Remedy.model_fields)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM remedies"  # noqa: S608 - our own names of columns
_WRITTEN = (*(name for name in _COLUMNS if name != "id"), "evidence")
_INSERT = f"INSERT INTO remedies ({', '.join(_WRITTEN)}) VALUES ({', '.join('?' * len(_WRITTEN))})"  # noqa: S608
_FORGET = (
    "DELETE FROM remedies WHERE machine = :machine AND outcome = :outcome AND id <= "
    "(SELECT id FROM remedies WHERE machine = :machine AND outcome = :outcome ORDER BY id DESC LIMIT 1 OFFSET :kept)"
)


class SqliteRemedies:
    """Safe for threads and processes: every change is one transaction that reads, decides and writes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def books(self, now_ms: int) -> Books:
        with opened(self._path, "ro") as db:
            db.execute("BEGIN")
            return _books(db, now_ms)

    def latest(self, machine: str | None, limit: int, before: int | None = None) -> list[Remedy]:
        query = f"{_SELECT} WHERE (? IS NULL OR machine = ?) AND (? IS NULL OR id < ?) ORDER BY id DESC LIMIT ?"
        with opened(self._path, "ro") as db:
            return _read(db, query, machine, machine, before, before, limit)

    def one(self, number: int) -> tuple[Remedy, str]:
        with opened(self._path, "ro") as db:
            found = _read(db, f"{_SELECT} WHERE id = ?", number) if number < 2**63 else []
            if not found:
                raise NoSuchRemedyError(f"there is no remedy {number}")
            evidence = db.execute("SELECT evidence FROM remedies WHERE id = ?", (number,)).fetchone()[0]
        return found[0], str(evidence)

    def taken_after(self, number: int, limit: int) -> list[Remedy]:
        with opened(self._path, "ro") as db:
            query = f"{_SELECT} WHERE id > ? AND outcome = 'taken' ORDER BY id LIMIT ?"
            return _read(db, query, number, limit)

    def take(self, look: Callable[[Books], Taking | None], now_ms: int) -> Remedy | None:
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            books = _books(db, now_ms)
            taking = look(books)
            if taking is None:
                return None  # and the connection is closed, which ends the transaction
            drain = secrets.token_hex(8) if taking.remedy.what == "reboot" else ""
            taken = _written(db, taking.remedy.model_copy(update={"drain": drain}), taking.evidence)
            _order(db, taken, now_ms)
            query = "UPDATE remedies SET end = 'replaced', ended_ms = ? WHERE machine = ? AND id < ? AND end IS NULL"
            db.execute(f"{query} AND outcome = 'taken'", (now_ms, taken.machine, taken.id))
            db.execute("COMMIT")  # an error before it closes the connection, which rolls back
        return taken

    def note(self, withheld: Remedy) -> None:
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            last = _read(db, f"{_SELECT} WHERE machine = ? ORDER BY id DESC LIMIT 1", withheld.machine)
            if not last or _told(last[0]) != _told(withheld):
                _written(db, withheld, "")
            db.execute("COMMIT")

    def settle(self, ends: Mapping[int, End], now_ms: int) -> None:
        with opened(self._path, "rw") as db:
            rows = [(end, now_ms, number) for number, end in ends.items()]
            db.execute("BEGIN IMMEDIATE")
            db.executemany("UPDATE remedies SET end = ?, ended_ms = ? WHERE id = ? AND end IS NULL", rows)
            db.execute("COMMIT")

    def pause(self, pause: Pause) -> bool:
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            new = pause.changes(_pause(db))
            if new:
                row = (pause.stands, pause.who, pause.reason, pause.since_ms)
                db.execute("INSERT OR REPLACE INTO remedy_pause VALUES (1, ?, ?, ?, ?)", row)
            db.execute("COMMIT")
        return new


def _books(db: sqlite3.Connection, now_ms: int) -> Books:
    query = f"{_SELECT} WHERE outcome = 'taken' AND (at_ms > ? OR end IS NULL) ORDER BY id"
    taken = _read(db, query, now_ms - DAY_MS)
    return Books(
        now_ms=now_ms,
        pause=_pause(db),
        taken=taken,
        orders=drains.named(db, (each.drain for each in taken if each.end is None and each.drain)),
        drains={each.machine: each for each in drains.standing(db)},
        intents=by_machine(intents.standing(db, now_ms)),
    )


def _pause(db: sqlite3.Connection) -> Pause | None:
    row = db.execute("SELECT stands, who, reason, since_ms FROM remedy_pause").fetchone()
    return Pause(stands=bool(row[0]), who=row[1], reason=row[2], since_ms=row[3]) if row is not None else None


def _written(db: sqlite3.Connection, remedy: Remedy, evidence: str) -> Remedy:
    row = db.execute(_INSERT, [*(getattr(remedy, name) for name in _WRITTEN[:-1]), evidence]).lastrowid
    db.execute(_FORGET, {"machine": remedy.machine, "outcome": remedy.outcome, "kept": KEPT})
    return remedy.model_copy(update={"id": row})


def _order(db: sqlite3.Connection, remedy: Remedy, now_ms: int) -> None:
    """What it wants, as `netboot machine reboot` and `netboot machine quarantine` want it."""
    reason = f"remedy {remedy.id}: {remedy.reason}: {remedy.message}"[:LONGEST_REASON]
    if remedy.what == "quarantine":
        intents.carry_out(db, remedy.machine, PutOn(Mark.QUARANTINED, reason, owner=remedy.owner), WHO, now_ms)
        return
    order = Drain(
        id=remedy.drain,
        machine=remedy.machine,
        what="reboot",
        boot=remedy.boot,
        who=WHO,
        reason=reason,
        since_ms=now_ms,
        deadline_ms=now_ms + DRAIN_MS,
        owner=remedy.owner,
    )
    if not drains.carry_out(db, order).did:
        raise StateUnavailableError(f"another order stands of {remedy.machine}")  # it is looked at once more


def _told(remedy: Remedy) -> tuple[str, ...]:
    return remedy.outcome, remedy.what, remedy.boot, remedy.reason, remedy.words


def _read(db: sqlite3.Connection, query: str, *values: object) -> list[Remedy]:
    return [Remedy.model_validate(dict(zip(_COLUMNS, row, strict=True))) for row in db.execute(query, values)]
