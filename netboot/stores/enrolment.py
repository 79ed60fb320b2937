"""Enrolled EKs and windows in `data/enrolment.db`: `netboot.join.enrolment.EnrolmentStore`.

Opened anew for each question: right for threads and for several processes, and a file that was restored is noticed.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from netboot.join.enrolment import (
    ALERTS_KEPT_MS,
    LONGEST_ALERT,
    Act,
    Alert,
    Change,
    EnrolmentStore,
    Entry,
    Order,
    OrdersRefusedError,
    Owner,
    Record,
    short,
)
from netboot.join.enrolment_rules import decide
from netboot.join.errors import RefusedError
from netboot.join.ports import AlertKind, Enrolment
from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores.enrolment_schema import connect

_COLUMNS = tuple(Record.model_fields)
_LIST = ", ".join(f'"{column}"' for column in _COLUMNS)
_SELECT = f"SELECT {_LIST} FROM machines"  # noqa: S608 - our own names of columns
_UPDATE = ", ".join(f'"{column}" = excluded."{column}"' for column in _COLUMNS[1:])
_INSERT = (
    f"INSERT INTO machines ({_LIST}) VALUES ({', '.join('?' * len(_COLUMNS))}) "  # noqa: S608
    f"ON CONFLICT (machine) DO UPDATE SET {_UPDATE}"
)
_ALERT = (
    "INSERT INTO alerts (machine, kind, first_ms, last_ms, count, said) "
    "VALUES (:machine, :kind, :now_ms, :now_ms, 1, :said) "
    "ON CONFLICT (machine, kind) DO UPDATE SET last_ms = excluded.last_ms, count = count + 1, said = excluded.said"
)
_ALERTS = (
    "INSERT INTO alerts (machine, kind, first_ms, last_ms, count, said) "
    "VALUES (:machine, :kind, :first_ms, :last_ms, :count, :said)"
)
_NOTE = "INSERT INTO history (at_ms, machine, act, operator, reason, ek_sha256, said) VALUES (?, ?, ?, ?, ?, ?, ?)"


class SqliteEnrolments(EnrolmentStore):
    """Safe for threads and processes: every change is one transaction that reads, decides and writes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def by_ek(self, ek_sha256: str) -> Enrolment | None:
        """A replaced EK is its machine's, and retired."""
        with self._open() as db:
            owner = _owner(db, ek_sha256)
            if owner is None:
                return None
            enrolment = _record(db, owner.machine).enrolment()
        return enrolment.model_copy(update=REPLACED | {"ek_sha256": ek_sha256}) if owner.replaced else enrolment

    def alert(self, machine: str, kind: AlertKind, message: str, now_ms: int) -> None:
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("DELETE FROM alerts WHERE last_ms < ?", (now_ms - ALERTS_KEPT_MS,))
            said = message[:LONGEST_ALERT]
            db.execute(_ALERT, {"machine": machine, "kind": kind, "now_ms": now_ms, "said": said})
            db.execute("COMMIT")

    def alerts(self, machine: str) -> list[Alert]:
        names = tuple(Alert.model_fields)
        query = f"SELECT {', '.join(names)} FROM alerts WHERE machine = ? ORDER BY last_ms DESC, kind"  # noqa: S608
        with self._open() as db:
            return [Alert.model_validate(dict(zip(names, row, strict=True))) for row in db.execute(query, (machine,))]

    def all_alerts(self) -> list[Alert]:
        """Of all machines, by name and kind."""
        names = tuple(Alert.model_fields)
        query = f"SELECT {', '.join(names)} FROM alerts ORDER BY machine, kind"  # noqa: S608
        with self._open() as db:
            return [Alert.model_validate(dict(zip(names, row, strict=True))) for row in db.execute(query)]

    def latest_alerts(self) -> dict[str, int]:
        with self._open() as db:
            return dict(db.execute("SELECT kind, max(last_ms) FROM alerts GROUP BY kind"))

    def record(self, machine: str) -> Record:
        with self._open() as db:
            return _record(db, machine)

    def records(self) -> list[Record]:
        with self._open() as db:
            return [_row(row) for row in db.execute(f"{_SELECT} ORDER BY machine")]

    def replaced(self) -> dict[str, tuple[str, ...]]:
        """Of each machine the EKs that were taken out of it."""
        found: dict[str, tuple[str, ...]] = {}
        with self._open() as db:
            for machine, ek in db.execute("SELECT machine, ek_sha256 FROM eks WHERE replaced ORDER BY 1, 2"):
                found[machine] = (*found.get(machine, ()), ek)
        return found

    def owner(self, ek_sha256: str) -> Owner | None:
        with self._open() as db:
            return _owner(db, ek_sha256)

    def history(self, machine: str | None, limit: int) -> list[Entry]:
        names = tuple(Entry.model_fields)
        query = f"SELECT {', '.join(names)} FROM history WHERE ? IS NULL OR machine = ? ORDER BY id DESC LIMIT ?"  # noqa: S608
        with self._open() as db:
            return [
                Entry.model_validate(dict(zip(names, row, strict=True)))
                for row in db.execute(query, (machine, machine, limit))
            ]

    def apply(
        self, orders: Sequence[tuple[str, Order]], act: Act, now_ms: int, *, dry_run: bool = False
    ) -> list[Change]:
        done: list[Change] = []
        refusals: list[tuple[int, RefusedError]] = []
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            for number, (machine, order) in enumerate(orders):
                try:
                    change = decide(_record(db, machine), order, lambda ek: _owner(db, ek), now_ms)
                except RefusedError as error:
                    refusals.append((number, error))
                    continue
                _write(db, change, act, now_ms)
                done.append(change)
            if refusals:
                raise OrdersRefusedError(refusals)  # closing the connection rolls back
            if not dry_run:
                db.execute("COMMIT")
        return done

    def have(
        self,
        records: Sequence[Record],
        replaced: Mapping[str, Sequence[str]],
        alerts: Sequence[Alert],
        act: Act,
        now_ms: int,
    ) -> None:
        """Have this on record, and nothing else, in one transaction. The history stays, and gets a line of each machine
        of which it is another thing. `replaced`: machine → EKs that were taken out of it.

        Raises:
            RefusedError: an EK is two machines'. StateUnavailableError.
        """
        two = [ek for ek, count in Counter(one.ek_sha256 for one in records).items() if ek is not None and count > 1]
        if two:
            names = " and ".join(one.machine for one in records if one.ek_sha256 == two[0])
            raise RefusedError(
                f"EK {short(two[0])} is of {names}: an EK belongs to one machine; take it out of the others"
            )
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            before = {row[0]: _row(row) for row in db.execute(_SELECT)}
            out = set(db.execute("SELECT ek_sha256, machine FROM eks WHERE replaced"))
            for table in ("machines", "eks", "alerts"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            for machine, eks in replaced.items():
                db.executemany("INSERT OR REPLACE INTO eks VALUES (?, ?, 1)", [(ek, machine) for ek in eks])
            for record in records:
                _have(db, record, before.pop(record.machine, Record(machine=record.machine)), act, now_ms)
            for machine in before:
                db.execute(_NOTE, (now_ms, machine, "migrated", *act, None, "nothing is on record any more"))
            for ek, machine in sorted(out - set(db.execute("SELECT ek_sha256, machine FROM eks WHERE replaced"))):
                db.execute(_NOTE, (now_ms, machine, "migrated", *act, ek, "not taken out of it any more"))
            db.executemany(_ALERTS, [one.model_dump() for one in alerts])
            db.execute("COMMIT")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(connect(self._path)) as db:
                yield db
        except (sqlite3.Error, OSError) as error:
            why = getattr(error, "strerror", None) or error
            raise StateUnavailableError(f"{self._path} cannot be used: {why}; it is tried again") from None


REPLACED = {"state": "retired", "window": None, "window_id": "", "window_until_ms": 0}
"""How join sees the EK of a TPM that was taken out of its machine."""


def _record(db: sqlite3.Connection, machine: str) -> Record:
    row = db.execute(f"{_SELECT} WHERE machine = ?", (machine,)).fetchone()
    return _row(row) if row else Record(machine=machine)


def _row(row: Sequence[object]) -> Record:
    return Record.model_validate(dict(zip(_COLUMNS, row, strict=True)))


def _owner(db: sqlite3.Connection, ek_sha256: str) -> Owner | None:
    row = db.execute("SELECT machine, replaced FROM eks WHERE ek_sha256 = ?", (ek_sha256,)).fetchone()
    return Owner(row[0], bool(row[1])) if row else None


def _have(db: sqlite3.Connection, record: Record, before: Record, act: Act, now_ms: int) -> None:
    """A revision that was shown of the one before is of no other."""
    kept = {"revision": before.revision, "since_ms": before.since_ms}
    another = before.model_copy(update=kept) != record.model_copy(update=kept)
    if another:
        kept = {"revision": max(before.revision, record.revision) + 1, "since_ms": record.since_ms}
        ek, said = record.ek_sha256, f"{_stood(before)} → {_stood(record)}"
        db.execute(_NOTE, (now_ms, record.machine, "migrated", *act, ek, said))
    now = record.model_copy(update=kept)
    db.execute(_INSERT, tuple(getattr(now, column) for column in _COLUMNS))
    if now.ek_sha256 is not None:
        db.execute("INSERT OR REPLACE INTO eks VALUES (?, ?, 0)", (now.ek_sha256, now.machine))


def _stood(record: Record) -> str:
    return f"{record.state}, generation {record.generation}"


def _write(db: sqlite3.Connection, change: Change, act: Act, now_ms: int) -> None:
    if not change.act:
        return
    record = change.record
    db.execute(_INSERT, tuple(getattr(record, column) for column in _COLUMNS))
    for ek, replaced in change.eks:
        db.execute("INSERT OR REPLACE INTO eks VALUES (?, ?, ?)", (ek, record.machine, replaced))
    concerned = change.eks[0][0] if change.eks else record.ek_sha256
    db.execute(_NOTE, (now_ms, record.machine, change.act, act.operator, act.reason, concerned, change.message))
