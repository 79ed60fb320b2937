"""The journal of one process: SQLite in WAL mode, one file, one writer, group commit with fsync.

`data/journal/boot-<n>.db` has one table, `records(id, at_ms, body)`: ids rise without reuse, `at_ms` is milliseconds
since 1970, `body` is a record of `netboot.lifecycle.events` as JSON. The projector reads it (`journal_reader`) and writes
the highest id that it has safely taken over into `boot-<n>.cursor` (decimal digits); the owner then purges those rows.

Whoever appends waits for the commit that holds the record; while one commit is on its way to the disk, everything that
arrives queues up and is the next one. So a slow disk makes larger commits, not a longer queue of them.
"""

import asyncio
import logging
import os
import queue
import secrets
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import DiscoveryRecord, EventRecord, ScriptRecord
from netboot.stores.journal_reader import cursor_path, read_cursor

log = logging.getLogger(__name__)

MOST_ROWS = 2_000_000
"""Records that the projector has not yet taken over; beyond it machines are told to come back."""
MOST_BYTES = 2 * 1024**3
LOCK_SECONDS = 2.0
"""How long a commit waits for somebody else's lock on the file; nobody but a repair by hand takes one."""
HOUSEKEEPING_SECONDS = 1.0
PURGE_ROWS = 20_000
"""Rows purged with one commit, so that no append waits long behind a purge."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, body TEXT NOT NULL)
"""
ROWS_A_STATEMENT = 64
"""One statement for many rows is one call into SQLite, which gives up the interpreter's lock once and not per row."""
_INSERTS = [
    "INSERT INTO records (at_ms, body) VALUES " + ", ".join(["(?, ?)"] * rows) for rows in range(ROWS_A_STATEMENT + 1)
]
_Waiting = tuple[int, str, "asyncio.Future[None]"]


class SqliteJournal:
    """`netboot.lifecycle.ports.Journal` on a file. Belongs to the event loop that it was opened on.

    `most_rows`, `most_bytes`: how much may wait for the projector. The file is opened at once, and again after any
    failure, so that a disk that comes back is used again without a restart.
    """

    def __init__(self, path: Path, *, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES) -> None:
        self._file = _File(path, most_rows, most_bytes)
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Waiting] = []
        self._kicked = self._closing = False
        self._batches: queue.SimpleQueue[list[_Waiting] | None] = queue.SimpleQueue()
        self._closed = self._loop.create_future()
        self.failure: str | None = None
        """Why the last commit failed, in words; None: it did not."""
        self._thread = threading.Thread(target=self._commit_for_ever, name=f"journal {path.name}", daemon=True)
        self._thread.start()

    @property
    def lag(self) -> int:
        """Records that the projector has not yet taken over."""
        return self._file.unshipped

    async def append(self, record: ScriptRecord | EventRecord | DiscoveryRecord) -> None:
        """Return when the record has survived a power cut; see `ports.Journal`."""
        await self.append_json(record.at_ms, record.model_dump_json())

    def append_json(self, at_ms: int, body: str) -> "asyncio.Future[None]":
        """The same for a record that is JSON already; a future instead of a coroutine because it is cheaper."""
        done: asyncio.Future[None] = self._loop.create_future()
        if self._closing:
            done.set_exception(JournalUnavailableError("the journal is closed: the service is stopping"))
            return done
        self._waiting.append((at_ms, body, done))
        if not self._kicked:
            # Not at once: whatever else this turn of the loop appends goes with the same commit.
            self._kicked = True
            self._loop.call_soon(self._kick)
        return done

    async def aclose(self) -> None:
        """Commit what is queued, then close the file. Later appends fail."""
        self._closing = True
        if not self._kicked:
            self._kick()
        await self._closed
        self._thread.join()

    def _kick(self) -> None:
        """Hand over everything that waits as one batch; with the answer to that the next one goes."""
        batch, self._waiting = self._waiting, []
        self._kicked = bool(batch)
        if batch:
            self._batches.put(batch)
        elif self._closing:
            self._batches.put(None)

    def _answer(self, batch: list[_Waiting], failure: str | None) -> None:
        self._note(failure)
        for _, _, done in batch:
            if done.done():
                continue  # whoever waited has gone; the record stays
            if failure is None:
                done.set_result(None)
            else:
                done.set_exception(JournalUnavailableError(failure))
        if batch:
            self._kick()

    def _commit_for_ever(self) -> None:
        """The journal's thread: commits batches, and looks after the file when there are none."""
        batch: list[_Waiting] | None = []
        while batch is not None:
            failure = self._file.commit(batch)
            self._loop.call_soon_threadsafe(self._answer, batch, failure)
            try:
                batch = self._batches.get(timeout=HOUSEKEEPING_SECONDS)
            except queue.Empty:
                batch = []
        self._file.close()
        self._loop.call_soon_threadsafe(self._closed.set_result, None)

    def _note(self, failure: str | None) -> None:
        if failure == self.failure:
            return
        if failure is not None:
            log.error("journal: %s", failure)
        else:
            log.warning("journal: records are written down again")
        self.failure = failure


class _File:
    """The database file; every method runs in the journal's one thread and none raises."""

    def __init__(self, path: Path, most_rows: int, most_bytes: int) -> None:
        self._path, self._most_rows, self._most_bytes = path, most_rows, most_bytes
        self._db: sqlite3.Connection | None = None
        self._inode = 0
        self._last = self._cursor = self._purged = self._bytes = 0
        self._looked = float("-inf")

    @property
    def unshipped(self) -> int:
        return max(0, self._last - self._cursor)

    def commit(self, rows: Sequence[_Waiting]) -> str | None:
        """Write rows down and fsync; None, or why it could not be done, in words."""
        try:
            db = self._open()
            self._housekeep(db)
            if not rows:
                return None
            full = self._full(len(rows))
            if full is not None:
                return full
            if len(rows) <= ROWS_A_STATEMENT:
                _insert(db, rows)  # a transaction of its own
            else:
                db.execute("BEGIN IMMEDIATE")
                for start in range(0, len(rows), ROWS_A_STATEMENT):
                    _insert(db, rows[start : start + ROWS_A_STATEMENT])
                db.execute("COMMIT")
            self._last += len(rows)
        except (sqlite3.Error, OSError, ValueError) as error:
            self.close()
            return _words(error, self._path)
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
        db = sqlite3.connect(self._path, timeout=LOCK_SECONDS, isolation_level=None)
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
            self._purged = db.execute("SELECT coalesce(min(id), 1) - 1 FROM records").fetchone()[0]
            _sync_folder(self._path.parent)
            self._inode = self._path.stat().st_ino
        except BaseException:
            db.close()
            raise
        self._db, self._looked = db, float("-inf")
        return db

    def _full(self, more: int) -> str | None:
        if self.unshipped + more > self._most_rows or self._bytes > self._most_bytes:
            return (
                f"the journal {self._path.name} is full: {self.unshipped} records ({self._bytes} bytes) wait for the "
                "projector; look why `netboot serve` does not run its controllers process, or why that one fails"
            )
        return None

    def _housekeep(self, db: sqlite3.Connection) -> None:
        """Once a second: purge what has been taken over, measure, and notice a file that was removed under us."""
        now = time.monotonic()
        if now - self._looked < HOUSEKEEPING_SECONDS:
            return
        self._looked = now
        if self._path.stat().st_ino != self._inode:
            raise OSError("it was replaced by another file while it was open")
        self._cursor = min(read_cursor(cursor_path(self._path)), self._last)
        if self._cursor > self._purged:
            upto = min(self._cursor, self._purged + PURGE_ROWS)
            db.execute("DELETE FROM records WHERE id <= ?", (upto,))
            self._purged = upto
            if upto < self._cursor:
                self._looked = float("-inf")
        pages, free, size = (
            db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("page_count", "freelist_count", "page_size")
        )
        self._bytes = (pages - free) * size


def _insert(db: sqlite3.Connection, rows: Sequence[_Waiting]) -> None:
    values: list[int | str] = []
    for at_ms, body, _ in rows:
        values.append(at_ms)
        values.append(body)
    db.execute(_INSERTS[len(rows)], values)


def _continue_after(db: sqlite3.Connection, cursor: int) -> int:
    """The last id given out. A file that was lost must not give out ids again that the projector has passed."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchone()
    last: int = row[0] if row else 0
    if last >= cursor:
        return last
    db.execute("DELETE FROM sqlite_sequence WHERE name = 'records'")
    db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('records', ?)", (cursor,))
    return cursor


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _words(error: Exception, path: Path) -> str:
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if "is full" in said or "No space" in said:
        remedy = "free space on its file system"
    elif "readonly" in said or "unable to open" in said or "Permission" in said or "Read-only" in said:
        remedy = "let the service's account write to its folder and files"
    elif "locked" in said:
        remedy = "end the other program that has it open"
    else:
        remedy = "check the disk; it is tried again with the next record"
    return f"the journal {path} cannot be written: {said}; {remedy}"
