"""SQLite files that several processes open, none of which is their owner: whoever comes first makes one, whole, under
another name, and brings an older one up to date."""

import os
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from images.values import files
from netboot.lifecycle.errors import StateUnavailableError

Migrations = Sequence[Sequence[str]]
"""Statements, version by version. What was released is never changed again."""
BUSY_SECONDS = 5.0
EMPTY = (
    "it has nothing in it, as after a full disk or a copy that was cut short: restore a backup; or remove it and "
    "restart the service, which makes one that says nothing"
)
_NEWER = "it was written by a newer netboot (schema {}, this one knows {}); run that version, or restore a backup"
_NEWER_MEANWHILE = (
    "{} was written by a newer netboot (schema {}, this one knows {}): restart the service, where that version is "
    "installed; otherwise run that version, or restore a backup"
)


def connect(path: Path, migrations: Migrations) -> sqlite3.Connection:
    """The file, made or brought up to date where that is needed, in autocommit mode, every commit durable.

    Raises:
        StateUnavailableError: it is newer than this program; or it is there and has nothing in it, which is not to be
            taken for a file that says nothing. sqlite3.Error, OSError.
    """
    if not path.exists():
        _create(path, migrations)
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous=FULL")
        _refuse_empty(db)
        _migrate(db, migrations)
    except BaseException:
        db.close()
        raise
    return db


def version_of(db: sqlite3.Connection) -> int:
    """The schema's number; 0: an empty file."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def known(path: Path, db: sqlite3.Connection, version: int) -> None:
    """Go on with a file of this schema alone.

    Raises:
        StateUnavailableError: it has another one, or nothing in it. sqlite3.Error.
    """
    found = version_of(db)
    if found == 0:
        raise StateUnavailableError(f"{path} cannot be used: {EMPTY}")
    if found > version:
        raise StateUnavailableError(_NEWER_MEANWHILE.format(path, found, version))
    if found != version:
        raise StateUnavailableError(f"{path} has schema {found}, and this netboot knows {version}: restart the service")


def _refuse_empty(db: sqlite3.Connection) -> None:
    if version_of(db) == 0:
        raise StateUnavailableError(EMPTY)


def _migrate(db: sqlite3.Connection, migrations: Migrations) -> None:
    newest = len(migrations)
    if version_of(db) == newest:
        return
    if version_of(db) > newest:
        raise StateUnavailableError(_NEWER.format(version_of(db), newest))
    db.execute("BEGIN IMMEDIATE")
    try:
        version = version_of(db)  # again: somebody else may have done it meanwhile
        for statements in migrations[version:]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {newest}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _create(path: Path, migrations: Migrations) -> None:
    staged = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    made = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        files.give(made, path.parent)  # of root's service could open none; what SQLite puts beside it follows it
        with closing(sqlite3.connect(staged, isolation_level=None)) as db:
            db.execute("PRAGMA synchronous=FULL")
            _migrate(db, migrations)
            db.execute("PRAGMA journal_mode=WAL")  # stays with the file
        with suppress(FileExistsError):
            path.hardlink_to(staged)  # unlike a rename, this never replaces one that somebody else has made meanwhile
    finally:
        os.close(made)
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{staged}{suffix}").unlink(missing_ok=True)
    files.sync_folder(path.parent)
