"""The schema of `data/enrolment.db` and how an older one becomes it. What was released is never changed again.

Several processes open it, and none of them is its owner: whoever comes first makes it, whole, under another name.
"""

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from images.values.files import sync_folder
from netboot.lifecycle.errors import StateUnavailableError

_APPROVED_BY_NAME = """EXISTS (SELECT 1 FROM history AS h WHERE h.machine = machines.machine
    AND h.ek_sha256 = machines.ek_sha256 AND h.act IN ('approved', 'imported'))"""
MIGRATIONS = (
    (
        """CREATE TABLE machines (
            machine TEXT PRIMARY KEY, ek_sha256 TEXT UNIQUE, state TEXT NOT NULL, source TEXT NOT NULL,
            generation INTEGER NOT NULL, "window" TEXT, window_id TEXT NOT NULL, window_until_ms INTEGER NOT NULL,
            details TEXT NOT NULL, since_ms INTEGER NOT NULL, revision INTEGER NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE eks (
            ek_sha256 TEXT PRIMARY KEY, machine TEXT NOT NULL, replaced INTEGER NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE history (
            id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, machine TEXT NOT NULL, act TEXT NOT NULL,
            operator TEXT NOT NULL, reason TEXT NOT NULL, ek_sha256 TEXT, said TEXT NOT NULL
        )""",
        "CREATE INDEX history_of_machine ON history (machine, id)",
    ),
    (
        "ALTER TABLE machines ADD COLUMN retired_from TEXT NOT NULL DEFAULT 'none'",
        # before this, whoever brought a machine back approved whatever EK was on record, shown or not
        f"""UPDATE machines SET state = 'pending' WHERE state = 'approved' AND NOT {_APPROVED_BY_NAME}
            AND EXISTS (SELECT 1 FROM history AS h WHERE h.machine = machines.machine AND h.act = 'returned')""",  # noqa: S608 - our own text
        f"""UPDATE machines SET retired_from = iif({_APPROVED_BY_NAME}, 'approved', 'pending')
            WHERE state = 'retired' AND ek_sha256 IS NOT NULL""",  # noqa: S608 - our own text
    ),
    (
        """CREATE TABLE alerts (
            machine TEXT NOT NULL, kind TEXT NOT NULL, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL,
            count INTEGER NOT NULL, said TEXT NOT NULL, PRIMARY KEY (machine, kind)
        ) WITHOUT ROWID""",
        "CREATE INDEX alerts_by_age ON alerts (last_ms)",
        # before this, each new key was a line of the history
        """INSERT INTO alerts SELECT machine, 'earlier', min(at_ms), max(at_ms), count(*),
            (SELECT said FROM history AS h WHERE h.machine = history.machine AND h.act = 'alert' ORDER BY h.id DESC)
            FROM history WHERE act = 'alert' GROUP BY machine""",
        "DELETE FROM history WHERE act = 'alert'",
    ),
)
VERSION = len(MIGRATIONS)
BUSY_SECONDS = 5.0
_NEWER = "it was written by a newer netboot (schema {}, this one knows {}); run that version, or restore a backup"


def connect(path: Path) -> sqlite3.Connection:
    """The file, made or brought up to date where that is needed, in autocommit mode, every commit durable.

    Raises:
        StateUnavailableError: it is newer than this program. sqlite3.Error, OSError.
    """
    if not path.exists():
        _create(path)
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous=FULL")
        _migrate(db)
    except BaseException:
        db.close()
        raise
    return db


def _migrate(db: sqlite3.Connection) -> None:
    if _version(db) == VERSION:
        return
    if _version(db) > VERSION:
        raise StateUnavailableError(_NEWER.format(_version(db), VERSION))
    db.execute("BEGIN IMMEDIATE")
    try:
        version = _version(db)  # again: somebody else may have done it meanwhile
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def _create(path: Path) -> None:
    staged = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    os.close(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(staged, isolation_level=None)) as db:
            db.execute("PRAGMA synchronous=FULL")
            _migrate(db)
            db.execute("PRAGMA journal_mode=WAL")  # stays with the file
        with suppress(FileExistsError):
            path.hardlink_to(staged)  # unlike a rename, this never replaces one that somebody else has made meanwhile
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{staged}{suffix}").unlink(missing_ok=True)
    sync_folder(path.parent)
