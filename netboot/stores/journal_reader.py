"""Reading a journal from another process, and telling its owner how far one has got. The projection's side.

For each `data/journal/boot-<n>.db`: read batches by `read_after`, make them durable elsewhere, then `write_cursor`.
A cursor is written *after* what it stands for is durable, so a crash means reading again, never losing; readers take
the same record twice without harm.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from images.values import files
from netboot.lifecycle.errors import JournalUnavailableError

CPU_SECONDS = 5.0
"""Of one look into a journal; twenty thousand rows take a twentieth. Its owner may have been broken into, and have made
of its table what never ends."""
LONGEST_ROW = 16 * 1024**2
"""Bytes; one that is longer is not taken into memory."""


class End(NamedTuple):
    """`identity` tells a journal from one that takes its place later; `last`: the highest id given out so far."""

    identity: int
    last: int


SCHEMA = "CREATE TABLE records (id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, body TEXT NOT NULL)"
"""The table of a journal, as SQLite keeps it: ids rise without reuse, `at_ms` is milliseconds since 1970."""


class Row(NamedTuple):
    """A record as it was written: `body` is the JSON of a `netboot.lifecycle.events.Record`, or damaged: with lone
    surrogates where it is not UTF-8, or bytes, or no text at all."""

    id: int
    body: str


def cursor_path(journal: Path) -> Path:
    """`boot-0.db` → `boot-0.cursor`, beside it."""
    return journal.with_suffix(".cursor")


def read_cursor(path: Path) -> int:
    """The highest id that has been taken over; 0 where there is no cursor, or none that makes sense.

    A cursor that was lost only means that records are read again.
    """
    try:
        text = files.small(path).decode("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return 0
    return int(text) if text.isdigit() and len(text) < 19 else 0


def write_cursor(path: Path, last: int) -> None:
    """Say that everything up to `last` is durable elsewhere; atomically, and it survives a power cut.

    Raises:
        OSError: the file cannot be written.
    """
    staged = path.with_suffix(".cursor-new")
    with staged.open("w", encoding="ascii") as file:
        file.write(f"{last}\n")
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)


def end_of(journal: Path) -> End | None:
    """Where the journal ends now; None: it is not there yet.

    Raises:
        JournalUnavailableError: the file cannot be read right now.
    """
    if not journal.exists():
        return None
    try:
        with _opened(journal) as db:
            identity = db.execute("PRAGMA user_version").fetchone()[0]
            row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchone()
    except sqlite3.Error as error:
        if "no such table" in str(error):
            return None  # its owner is just creating it
        raise JournalUnavailableError(f"the journal {journal} cannot be read: {error}; it is tried again") from None
    return End(identity, row[0] if row else 0)


def read_after(journal: Path, cursor: int, most: int = 5_000, most_bytes: int = 2**62) -> list[Row]:
    """At most `most` rows with an id above `cursor`, in order, up to the one whose body brings them to `most_bytes`;
    empty where the journal is not there yet.

    Raises:
        JournalUnavailableError: the file cannot be read right now.
    """
    if not journal.exists():
        return []
    try:
        with _opened(journal) as db:
            db.text_factory = lambda text: text.decode("utf-8", "surrogateescape")  # a bad row must not fail the others
            rows, size = list[Row](), 0
            query = "SELECT id, body FROM records WHERE id > ? ORDER BY id LIMIT ?"
            for row in db.execute(query, (cursor, most)):
                rows.append(Row(*row))
                size += len(row[1]) if isinstance(row[1], str | bytes) else 0
                if size >= most_bytes:
                    break
    except sqlite3.Error as error:
        if "no such table" in str(error):
            return []  # its owner is just creating it
        raise JournalUnavailableError(f"the journal {journal} cannot be read: {error}; it is tried again") from None
    return rows


@contextmanager
def _opened(journal: Path) -> Iterator[sqlite3.Connection]:
    """For reading, within the bounds above; whoever is beyond them gets a `sqlite3.Error`."""
    with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0)) as db:
        until = time.thread_time() + CPU_SECONDS
        db.set_progress_handler(lambda: time.thread_time() > until, 100_000)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_ROW)
        db.execute("BEGIN")
        made = db.execute("SELECT type, sql FROM sqlite_master WHERE name = 'records'").fetchall()
        if made and made != [("table", SCHEMA)]:  # a view, or a column that is computed, has no bound of its own
            raise sqlite3.DatabaseError("it is not the table that a journal has")
        yield db
