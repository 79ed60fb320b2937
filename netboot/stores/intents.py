"""What is wanted of machines, in `data/intents.db`: `netboot.lifecycle.intents.Intents` and `IntentStore`.

The supervisor makes the file when the service starts, and nobody else: one that is gone while it runs is not made anew,
for an empty one would say that nothing is held. Opened anew for each question, as that of enrolments is.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from images.values.faults import first_fault
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.intent_rules import decide, end_of, ended, entries, ordered
from netboot.lifecycle.intents import Change, DeclaredBy, Entry, Intent, Order
from netboot.stores import shared_file

MIGRATIONS = (
    (
        """CREATE TABLE intents (
            machine TEXT NOT NULL, mark TEXT NOT NULL, owner TEXT NOT NULL, who TEXT NOT NULL, reason TEXT NOT NULL,
            since_ms INTEGER NOT NULL, until_ms INTEGER, PRIMARY KEY (machine, mark, owner)
        ) WITHOUT ROWID""",
        """CREATE TABLE history (
            id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, machine TEXT NOT NULL, mark TEXT NOT NULL,
            act TEXT NOT NULL, owner TEXT NOT NULL, who TEXT NOT NULL, reason TEXT NOT NULL, until_ms INTEGER
        )""",
        "CREATE INDEX history_of_machine ON history (machine, id)",
        """CREATE TABLE freezes (
            id INTEGER PRIMARY KEY CHECK (id = 1), who TEXT NOT NULL, reason TEXT NOT NULL, since_ms INTEGER NOT NULL,
            until_ms INTEGER
        )""",
    ),
    (
        """CREATE TABLE drains (
            id TEXT NOT NULL UNIQUE, machine TEXT NOT NULL, what TEXT NOT NULL, boot TEXT NOT NULL, who TEXT NOT NULL,
            reason TEXT NOT NULL, since_ms INTEGER NOT NULL, deadline_ms INTEGER NOT NULL, bare INTEGER NOT NULL,
            local INTEGER NOT NULL, end TEXT, ended_ms INTEGER, words TEXT NOT NULL
        )""",
        "CREATE UNIQUE INDEX drains_standing ON drains (machine) WHERE end IS NULL",
    ),
    (
        "ALTER TABLE drains ADD COLUMN owner TEXT NOT NULL DEFAULT 'operator'",
        "CREATE INDEX drains_of_machine ON drains (machine)",
    ),
    (
        """CREATE TABLE remedies (
            id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, machine TEXT NOT NULL, what TEXT NOT NULL,
            outcome TEXT NOT NULL, reason TEXT NOT NULL, boot TEXT NOT NULL, since_ms INTEGER NOT NULL,
            message TEXT NOT NULL, words TEXT NOT NULL, drain TEXT NOT NULL, end TEXT, ended_ms INTEGER,
            evidence TEXT NOT NULL
        )""",
        "CREATE INDEX remedies_of_machine ON remedies (machine, id)",
        "CREATE INDEX remedies_taken ON remedies (at_ms) WHERE outcome = 'taken'",
        """CREATE TABLE remedy_pause (
            id INTEGER PRIMARY KEY CHECK (id = 1), stands INTEGER NOT NULL, who TEXT NOT NULL, reason TEXT NOT NULL,
            since_ms INTEGER NOT NULL
        )""",
    ),
    ("ALTER TABLE intents ADD COLUMN object TEXT",),
    (
        # `netboot.stores.shared_drains`: what objects were known to say, and of when what all of them say was read
        """CREATE TABLE orders (
            name TEXT PRIMARY KEY, uid TEXT NOT NULL, generation INTEGER NOT NULL, drain TEXT NOT NULL,
            written_ms INTEGER NOT NULL, state TEXT
        ) WITHOUT ROWID""",
        "CREATE TABLE orders_followed (id INTEGER PRIMARY KEY CHECK (id = 1), as_of_ms INTEGER NOT NULL)",
    ),
)
VERSION = len(MIGRATIONS)
HISTORY_KEPT = 500
"""Lines for each machine; as many more of what objects declare, so that nobody who writes those pushes others out."""

_COLUMNS = tuple(Intent.model_fields)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM intents"  # noqa: S608 - our own names of columns
_REPLACE = f"INSERT OR REPLACE INTO intents ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608
_NOTED = tuple(name for name in Entry.model_fields if name != "id")
_NOTE = f"INSERT INTO history ({', '.join(_NOTED)}) VALUES ({', '.join('?' * len(_NOTED))})"  # noqa: S608
_THESE = "AND (owner LIKE 'kubernetes/%') = :objects"
_FORGET = (
    f"WITH of_these AS (SELECT id FROM history WHERE machine = :machine {_THESE}) DELETE FROM history WHERE id IN "  # noqa: S608
    "(SELECT id FROM of_these ORDER BY id DESC LIMIT -1 OFFSET :kept)"
)


def make(path: Path) -> sqlite3.Connection:
    """The file, made or brought up to date; whoever keeps it open keeps SQLite's files beside it.

    Raises:
        StateUnavailableError: it is newer than this program. sqlite3.Error, OSError.
    """
    return shared_file.connect(path, MIGRATIONS)


class SqliteIntents:
    """Safe for threads and processes: every change is one transaction that reads, decides and writes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, machine: str, now_ms: int) -> list[Intent]:
        with opened(self._path, "ro") as db:
            return _standing(_read(db, f"{_SELECT} WHERE machine = ?", machine), now_ms)

    def all(self, now_ms: int) -> list[Intent]:
        with opened(self._path, "ro") as db:
            return standing(db, now_ms)

    def history(self, machine: str | None, limit: int) -> list[Entry]:
        names = tuple(Entry.model_fields)
        query = f"SELECT {', '.join(names)} FROM history WHERE ? IS NULL OR machine = ? ORDER BY id DESC LIMIT ?"  # noqa: S608
        with opened(self._path, "ro") as db:
            rows = db.execute(query, (machine, machine, limit)).fetchall()
            return [Entry.model_validate(dict(zip(names, row, strict=True))) for row in rows]

    def order(self, machine: str, order: Order, who: str, now_ms: int) -> Change:
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            change = carry_out(db, machine, order, who, now_ms)
            db.execute("COMMIT")  # an error before it closes the connection, which rolls back
        return change


def carry_out(db: sqlite3.Connection, machine: str, order: Order, who: str, now_ms: int) -> Change:
    """Read, decide and write, in the transaction that is open."""
    before = _read(db, f"{_SELECT} WHERE machine = ?", machine)
    change = decide(machine, before, order, who, now_ms)
    over = ended(before, now_ms) if change.act else []
    for intent in (*over, *change.removed):
        _remove(db, intent)
    for intent in change.put:
        db.execute(_REPLACE, _row(intent))
    said = [end_of(intent) for intent in over] + entries(change, order, who, now_ms) if change.act else []
    db.executemany(_NOTE, [[getattr(entry, column) for column in _NOTED] for entry in said])
    db.executemany(_FORGET, [{"machine": machine, "kept": HISTORY_KEPT, "objects": each} for each in (False, True)])
    return change


def standing(db: sqlite3.Connection, now_ms: int) -> list[Intent]:
    """All that stand, in the transaction that is open."""
    return _standing(_read(db, _SELECT), now_ms)


@contextmanager
def opened(path: Path, mode: Literal["ro", "rw"]) -> Iterator[sqlite3.Connection]:
    """The file while in the block; never made.

    Raises:
        StateUnavailableError: it is not there, cannot be used, or holds what cannot be read.
    """
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=shared_file.BUSY_SECONDS, isolation_level=None)) as db:
            if mode == "rw":
                db.execute("PRAGMA synchronous=FULL")
            shared_file.known(path, db, VERSION)
            yield db
    except ValidationError as error:
        fault = first_fault(error)
        raise StateUnavailableError(
            f"{path} holds what cannot be read ({fault.key}: {fault.message}): restore a backup"
        ) from None
    except (sqlite3.Error, OSError) as error:
        why = "it is not there" if not path.exists() else error
        raise StateUnavailableError(f"{path} cannot be used: {why}; what is held cannot be told") from None


def _read(db: sqlite3.Connection, query: str, *values: object) -> list[Intent]:
    rows = db.execute(query, values).fetchall()
    return [_intent(dict(zip(_COLUMNS, row, strict=True))) for row in rows]


def _intent(row: dict[str, object]) -> Intent:
    """One row. `object` is JSON, of rows of an older version None."""
    if isinstance(text := row["object"], str):
        row = {**row, "object": DeclaredBy.model_validate_json(text)}
    return Intent.model_validate(row)


def _row(intent: Intent) -> list[object]:
    row = {column: getattr(intent, column) for column in _COLUMNS}
    return list({**row, "object": intent.object.model_dump_json() if intent.object is not None else None}.values())


def _standing(intents: Sequence[Intent], now_ms: int) -> list[Intent]:
    return ordered(intent for intent in intents if intent.stands(now_ms))


def _remove(db: sqlite3.Connection, intent: Intent) -> None:
    key = (intent.machine, intent.mark, intent.owner)
    db.execute("DELETE FROM intents WHERE machine = ? AND mark = ? AND owner = ?", key)
