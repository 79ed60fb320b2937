"""The schema of `data/state.db` and how an older one becomes it. What was released is never changed again."""

import sqlite3

from netboot.lifecycle.errors import StateUnavailableError

MIGRATIONS = (
    """
    CREATE TABLE cursors (journal TEXT PRIMARY KEY, identity INTEGER NOT NULL, last INTEGER NOT NULL) WITHOUT ROWID;
    -- `boot` sorts by age, for an id begins with the time of its minting
    CREATE TABLE boots (
        boot TEXT PRIMARY KEY, machine TEXT NOT NULL, reported INTEGER NOT NULL, state TEXT NOT NULL,
        trace TEXT NOT NULL, fed INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX boots_of_machine ON boots (machine, reported, boot);
    CREATE TABLE claims (machine TEXT PRIMARY KEY, served INTEGER NOT NULL, last_ms INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE discovered (key TEXT PRIMARY KEY, last_ms INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX discovered_by_age ON discovered (last_ms);
    CREATE TABLE feed (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);
    """,
    """
    -- `standing`: 0 claimed, 1 reported, 2 proven; `proven_ms`: since when
    DROP INDEX boots_of_machine;
    ALTER TABLE boots RENAME COLUMN reported TO standing;
    ALTER TABLE boots ADD COLUMN proven_ms INTEGER;
    CREATE INDEX boots_of_machine ON boots (machine, standing, boot, proven_ms);
    """,
    """
    -- the latest health report of a boot
    CREATE TABLE health (
        boot TEXT PRIMARY KEY, machine TEXT NOT NULL, at_ms INTEGER NOT NULL, status TEXT NOT NULL, body TEXT NOT NULL
    );
    CREATE INDEX health_of_machine ON health (machine, boot);
    """,
    """
    -- rows that could not be read, of journals and of this file: for people to look at
    CREATE TABLE set_aside (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, origin TEXT NOT NULL,
        row TEXT NOT NULL, reason TEXT NOT NULL, body BLOB NOT NULL
    );
    -- `at_ms`: the latest moment of a record taken; records up to `again_id` that are not later than `again_ms` were
    -- counted before the journal was replaced by an older copy of itself
    ALTER TABLE cursors ADD COLUMN at_ms INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE cursors ADD COLUMN again_id INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE cursors ADD COLUMN again_ms INTEGER NOT NULL DEFAULT 0;
    UPDATE cursors SET at_ms = coalesce((SELECT max(last_ms) FROM claims), 0);
    """,
)
VERSION = len(MIGRATIONS)
_NEWER = "it was written by a newer netboot (schema {}, this one knows {}); run that version, or restore a backup"


def version_of(db: sqlite3.Connection) -> int:
    """The schema's number; 0: an empty file."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(db: sqlite3.Connection) -> None:
    """Bring the schema up to `VERSION`, each step whole or not at all. `db` is in autocommit mode.

    Raises:
        StateUnavailableError: the file is newer than this program.
    """
    version = version_of(db)
    if version > VERSION:
        raise StateUnavailableError(_NEWER.format(version, VERSION))
    for number in range(version, VERSION):
        try:
            db.executescript(f"BEGIN IMMEDIATE; {MIGRATIONS[number]}; PRAGMA user_version = {number + 1}; COMMIT")
        except sqlite3.Error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
