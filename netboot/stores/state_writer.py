"""Writing `data/state.db`: `netboot.lifecycle.state.Projection`. One process writes, the projection's."""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from netboot.lifecycle.arrivals import Arrivals
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.events import AnyRecord, SharedRecord
from netboot.lifecycle.state import Batch, SetAside
from netboot.stores import state_machines, state_renamed, state_rows
from netboot.stores.state_fold import Row, project
from netboot.stores.state_schema import migrate

_MOST_MS = 2**63 - 1
"""The largest INTEGER of SQLite."""


class SqliteProjection:
    """Opened when first used, and again after any failure, so that a disk that comes back is used again.

    What it has committed has survived a power cut (`synchronous=FULL`): the journals are purged behind it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._arrivals = Arrivals()
        self._place: int = 0
        self._after: object = None
        """How far the file has been inspected."""

    def cursor(self, journal: str) -> tuple[int, int]:
        with self._usable() as db:
            cursor = _cursor(db, journal)
            return cursor.identity, cursor.last

    def take(self, batch: Batch) -> Mapping[str, int]:
        with self._usable() as db:
            db.execute("BEGIN IMMEDIATE")
            cursor, aside = _cursor(db, batch.journal), state_rows.last_set_aside(db)
            if cursor.identity != batch.identity:
                cursor = _Cursor(batch.identity)
            if cursor.last < batch.last:
                _project_row_by_row(db, batch.journal, self._rows(batch, cursor))
                state_rows.set_aside(db, batch.set_aside)
                latest = min(max((record.at_ms for record in batch.records), default=0), _MOST_MS)
                _put(db, batch.journal, cursor._replace(last=batch.last, at_ms=max(cursor.at_ms, latest)))
            counts = state_rows.count_set_aside(db, aside)
            db.execute("COMMIT")
            return counts

    def rewind(self, journal: str, upto: int) -> None:
        with self._usable() as db:
            cursor = _cursor(db, journal)
            _put(db, journal, cursor._replace(last=0, again_id=upto, again_ms=cursor.at_ms))

    def settle(self) -> None:
        self._arrivals.settle()

    def declare(self, machines: Collection[str], seconds: int) -> int:
        with self._usable() as db:
            db.execute("BEGIN IMMEDIATE")
            forgotten = state_machines.declare(db, machines, seconds)
            db.execute("COMMIT")
            return forgotten

    def rename(self, present: Mapping[str, str]) -> None:
        with self._usable() as db:
            db.execute("BEGIN IMMEDIATE")
            state_renamed.rename(db, present)
            db.execute("COMMIT")

    def inspect(self) -> Mapping[str, int] | None:
        if self._place == len(state_rows.TABLES):
            return None
        with self._usable() as db:
            db.execute("BEGIN IMMEDIATE")
            aside = state_rows.last_set_aside(db)
            self._place, self._after = state_rows.inspect(db, self._place, self._after)
            counts = state_rows.count_set_aside(db, aside)
            if counts:
                state_machines.refresh_stale(db)
            db.execute("COMMIT")
            return counts

    def close(self) -> None:
        """Close the file; it is opened again when used again."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db = None

    def _rows(self, batch: Batch, cursor: "_Cursor") -> list[Row]:
        ids = batch.ids or range(batch.last - len(batch.records) + 1, batch.last + 1)
        rows = []
        for number, record in zip(ids, batch.records, strict=True):
            again = number <= cursor.again_id and record.at_ms <= cursor.again_ms
            # what was taken before is older than what the state holds, and where that is gone, older than everything
            rows.append(Row(number, record, self._number(batch.journal, record, again=again), again))
        return rows

    def _number(self, journal: str, record: AnyRecord, *, again: bool) -> int:
        if isinstance(record, SharedRecord):
            self._arrivals.see(max(record.since, record.arrived), record.at_ms)
            return record.since
        return 0 if again else self._arrivals.number(journal, record.at_ms)

    @contextmanager
    def _usable(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._db is None:
                self._db = _open(self._path)
                self._arrivals = Arrivals(_newest(self._db))
            yield self._db
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StateUnavailableError(f"{self._path} cannot be written: {error}; it is tried again") from None
        except BaseException:
            self.close()  # rolls back
            raise


def _open(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=2.0, isolation_level=None)
    try:
        state_rows.lenient(db)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA journal_size_limit=67108864")
        migrate(db)
    except BaseException:
        db.close()
        raise
    return db


def _newest(db: sqlite3.Connection) -> int:
    """The number of the fact that arrived last, of those that are kept."""
    newest: int = db.execute(
        "SELECT max(coalesce((SELECT max(since) FROM boots), 0), coalesce((SELECT max(arrived) FROM health), 0), "
        "coalesce((SELECT max(arrived) FROM discovered), 0), coalesce((SELECT max(arrived) FROM hardware), 0))"
    ).fetchone()[0]
    return newest


class _Cursor(NamedTuple):
    """A row of `cursors`; see the schema."""

    identity: int = 0
    last: int = 0
    at_ms: int = 0
    again_id: int = 0
    again_ms: int = 0


def _cursor(db: sqlite3.Connection, journal: str) -> _Cursor:
    query = "SELECT identity, last, at_ms, again_id, again_ms FROM cursors WHERE journal = ?"
    row = db.execute(query, (journal,)).fetchone()
    return _Cursor(*row) if row else _Cursor()


def _put(db: sqlite3.Connection, journal: str, cursor: _Cursor) -> None:
    db.execute(
        "INSERT OR REPLACE INTO cursors (journal, identity, last, at_ms, again_id, again_ms) VALUES (?, ?, ?, ?, ?, ?)",
        (journal, *cursor),
    )


def _project_row_by_row(db: sqlite3.Connection, journal: str, rows: Sequence[Row]) -> None:
    """All at once; if that fails for another reason than the disk, by halves, until what cannot be taken is alone."""
    db.execute("SAVEPOINT some")
    try:
        project(db, rows)
    except Exception as error:
        if isinstance(error, (sqlite3.Error, OSError, MemoryError)) and not isinstance(error, sqlite3.DataError):
            raise
        db.execute("ROLLBACK TO some")
        half = len(rows) // 2
        if half:
            _project_row_by_row(db, journal, rows[:half])
            _project_row_by_row(db, journal, rows[half:])
        else:
            body = rows[0].record.model_dump_json().encode("utf-8", "surrogateescape")
            state_rows.set_aside(db, [SetAside(journal, f"record {rows[0].id}", f"cannot be taken: {error}", body)])
    db.execute("RELEASE some")
