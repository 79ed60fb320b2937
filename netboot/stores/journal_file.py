"""The file of a journal: a SQLite database in WAL mode. What is written, when it is purged, what its failures mean.

One table, `records(id, at_ms, body)`: ids rise without reuse, `at_ms` is milliseconds since 1970, `body` is a record of
`netboot.lifecycle.events` as JSON. `user_version` is drawn at random when the file is made.
"""

import secrets
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from images.values.files import sync_folder
from netboot.stores.journal_reader import SCHEMA, cursor_path, read_cursor

LOCK_SECONDS = 2.0
"""How long a commit waits for somebody else's lock on the file; nobody but a repair by hand takes one."""
HOUSEKEEPING_SECONDS = 1.0
DEADLINE_SECONDS = 5.0
"""For a commit; machines wait longer for an answer, and a disk that is only slow needs less."""
STANDING = f"the disk has not answered for {DEADLINE_SECONDS:g} seconds; look at the disk of the data folder"
PROBE_SECONDS = 5.0
"""Without a record for so long, what changes nothing is written, to see whether the disk takes it."""
RESERVED = 4
"""One part in so many of a journal is kept for what may use it; see `crowded`."""
PURGE_ROWS = 20_000
"""Rows purged at once while nobody waits for a commit."""
PURGE_BESIDE = 64
"""And beside rows that somebody waits for, in the same transaction, so many more than twice as many as those are."""
ROWS_A_STATEMENT = 64
"""One statement for many rows is one call into SQLite, which gives up the interpreter's lock once and not per row."""

_SCHEMA = SCHEMA.replace("TABLE", "TABLE IF NOT EXISTS", 1)
_INSERTS = [
    "INSERT INTO records (at_ms, body) VALUES " + ", ".join(["(?, ?)"] * rows)  # noqa: S608 - placeholders only
    for rows in range(ROWS_A_STATEMENT + 1)
]
Rows = Sequence[tuple[int, str]]
"""`at_ms` and `body` of each."""


class JournalFile:
    """The database file; one thread at a time may use it, and no method raises."""

    def __init__(self, path: Path, most_rows: int, most_bytes: int) -> None:
        self._path, self._most_rows, self._most_bytes = path, most_rows, most_bytes
        self._db: sqlite3.Connection | None = None
        self._inode = 0
        self._broken = False
        self._last = self._cursor = self._purged = self._bytes = 0
        self._looked = self._written = float("-inf")

    @property
    def unshipped(self) -> int:
        """Records that the projection has not taken over yet."""
        return max(0, self._last - self._cursor)

    def crowded(self, more: int) -> bool:
        """Whether another record, behind `more` that are not written yet, would take room that is reserved."""
        rows, size = self._most_rows - self._most_rows // RESERVED, self._most_bytes - self._most_bytes // RESERVED
        return self.unshipped + more >= rows or self._bytes > size

    def commit(self, rows: Rows) -> str | None:
        """Write rows down and fsync; None, or why it could not be done, in words."""
        try:
            db = self._open()
            purge = self._housekeep(db, len(rows))
            full = self._full(len(rows))
            if full is not None:
                return full
            if not rows:
                self._probe(db)
                return None
            _write(db, rows, purge)
            self._last += len(rows)
            self._purged = purge or self._purged
            self._broken, self._written = False, time.monotonic()
        except (sqlite3.Error, OSError) as error:
            self._broken = True
            self.close()
            return _explained(error, self._path)
        return None

    def close(self) -> None:
        """Close the file; the next commit opens it again."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db = None

    def _open(self) -> sqlite3.Connection:
        if self._db is not None:
            return self._db
        self._path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self._path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=FULL")
            db.execute("PRAGMA journal_size_limit=16777216")
            db.execute(_SCHEMA)
            if db.execute("PRAGMA user_version").fetchone()[0] == 0:
                # tells this journal from one that takes its place after it was lost; inodes are used again
                db.execute(f"PRAGMA user_version = {1 + secrets.randbelow(2**31 - 1)}")
            self._cursor = read_cursor(cursor_path(self._path))
            self._last = _continue_after(db, self._cursor)
            self._purged = db.execute("SELECT coalesce(min(id) - 1, ?) FROM records", (self._last,)).fetchone()[0]
            sync_folder(self._path.parent)
            self._inode = self._path.stat().st_ino
        except BaseException:
            db.close()
            raise
        self._db, self._looked = db, float("-inf")
        return db

    def _probe(self, db: sqlite3.Connection) -> None:
        """After a failure, and now and then, with nothing to write: write what changes nothing, to see whether it can
        be done."""
        if self._broken or time.monotonic() - self._written >= PROBE_SECONDS:
            identity = db.execute("PRAGMA user_version").fetchone()[0]
            db.execute(f"PRAGMA user_version = {identity}")
            self._broken, self._written = False, time.monotonic()

    def _full(self, more: int) -> str | None:
        if self.unshipped + max(more, 1) > self._most_rows or self._bytes > self._most_bytes:
            return (
                f"the journal {self._path.name} is full: {self.unshipped} records ({self._bytes} bytes) wait for the "
                "projection; look why `netboot serve` does not run its controllers process, or why that one fails"
            )
        return None

    def _housekeep(self, db: sqlite3.Connection, rows: int) -> int:
        """Once a second: see what has been taken over, measure, and notice a file that was removed under us. What has
        been taken over is purged: here, without rows, with little room or after a failure; else a piece with the rows.

        Returns:
            The last id of that piece; 0: nothing is to be purged with the rows.
        """
        due = time.monotonic() - self._looked >= HOUSEKEEPING_SECONDS
        if due:
            self._looked = time.monotonic()
            if self._path.stat().st_ino != self._inode:
                raise OSError("it was replaced by another file while it was open")
            self._cursor = min(read_cursor(cursor_path(self._path)), self._last)
        beside = rows and not self._broken and self._bytes <= self._most_bytes // 2
        if due and not beside and self._cursor > self._purged:
            upto = min(self._cursor, self._purged + PURGE_ROWS)
            _write(db, (), upto)
            self._purged = upto
            if upto < self._cursor:
                self._looked = float("-inf")
        if due:
            pages, free, size = (
                db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("page_count", "freelist_count", "page_size")
            )
            self._bytes = (pages - free) * size
        if beside and self._cursor > self._purged:
            return min(self._cursor, self._purged + PURGE_BESIDE + 2 * rows)
        return 0


def _write(db: sqlite3.Connection, rows: Rows, purge: int) -> None:
    """Rows, and the purge up to that id, in one transaction: nobody waits for a second one's way to the disk."""
    if not purge and len(rows) <= ROWS_A_STATEMENT:
        _insert(db, rows)  # a transaction of its own
        return
    db.execute("BEGIN IMMEDIATE")
    if purge:
        db.execute("DELETE FROM records WHERE id <= ?", (purge,))
    for start in range(0, len(rows), ROWS_A_STATEMENT):
        _insert(db, rows[start : start + ROWS_A_STATEMENT])
    db.execute("COMMIT")


def _insert(db: sqlite3.Connection, rows: Rows) -> None:
    values: list[int | str] = []
    for at_ms, body in rows:
        values.append(at_ms)
        values.append(body)
    db.execute(_INSERTS[len(rows)], values)


def _continue_after(db: sqlite3.Connection, cursor: int) -> int:
    """The last id given out. A file that was lost must not give out ids again that the projection has passed."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchone()
    last: int = row[0] if row else 0
    if last >= cursor:
        return last
    db.execute("BEGIN IMMEDIATE")  # in between the journal would look like an older copy of itself
    db.execute("DELETE FROM sqlite_sequence WHERE name = 'records'")
    db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('records', ?)", (cursor,))
    db.execute("COMMIT")
    return cursor


def _explained(error: Exception, path: Path) -> str:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if "is full" in reason or "No space" in reason:
        remedy = "free space on its file system"
    elif "readonly" in reason or "unable to open" in reason or "Permission" in reason or "Read-only" in reason:
        remedy = "let the service's account write to its folder and files"
    elif "locked" in reason:
        remedy = "end the other program that has it open"
    else:
        remedy = "check the disk; it is tried again with the next record"
    return f"the journal {path} cannot be written: {reason}; {remedy}"
