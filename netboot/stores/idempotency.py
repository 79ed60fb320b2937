"""What acts came to that were asked for with a key, in `data/audit.db`: so that one that is asked for again is not done
again (draft-ietf-httpapi-idempotency-key-header).

Bounded in time, number and bytes; the oldest go first, but none that is being done. Keys are kept as hashes.
"""

import hashlib
import sqlite3
from pathlib import Path
from typing import NamedTuple

from netboot.stores.audit import opened

KEPT_MS = 24 * 3_600_000
MOST_KEYS = 10_000
MOST_BYTES = 32 * 1024 * 1024
LARGEST = 256 * 1024
"""Bytes of one answer; a larger one is not kept."""


class Begun(NamedTuple):
    """An act that was asked for before. `request`: the hash of what was asked; `owner`: the process that began it, "":
    nobody knows what came of it; `status`: of the answer, None: there is none (yet); `answer`: None: it is not kept."""

    request: bytes
    owner: str
    status: int | None
    answer: bytes | None


class SqliteIdempotency:
    """Safe for threads and processes. `owner`: who begins acts here, another one after each start."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path, self.owner = path, owner

    def begin(self, who: str, key: str, request: bytes, now_ms: int) -> Begun | None:
        """Note that it begins, on the disk when this returns; or what was begun with that key. Raises
        StateUnavailableError."""
        name = _name(who, key)
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("DELETE FROM idempotency WHERE at_ms <= ?", (now_ms - KEPT_MS,))
            query = "SELECT request, owner, status, answer FROM idempotency WHERE id = ?"
            row = db.execute(query, (name,)).fetchone()
            if row is None:
                insert = "INSERT INTO idempotency (id, at_ms, request, owner) VALUES (?, ?, ?, ?)"
                db.execute(insert, (name, now_ms, request, self.owner))
                _bound_number(db, self.owner)
            db.execute("COMMIT")
        return Begun(*row) if row is not None else None

    def keep(self, who: str, key: str, status: int, answer: bytes | None) -> None:
        """It was done. Raises StateUnavailableError."""
        kept = answer if answer is not None and len(answer) <= LARGEST else None
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            update = "UPDATE idempotency SET status = ?, answer = ?, bytes = ? WHERE id = ?"
            db.execute(update, (status, kept, len(kept or b""), _name(who, key)))
            _bound_bytes(db)
            db.execute("COMMIT")

    def forget(self, who: str, key: str) -> None:
        """Nothing was done. Raises StateUnavailableError."""
        with opened(self._path, "rw") as db:
            db.execute("DELETE FROM idempotency WHERE id = ?", (_name(who, key),))

    def lose(self, who: str, key: str) -> None:
        """Nobody knows whether it was done. Raises StateUnavailableError."""
        with opened(self._path, "rw") as db:
            db.execute("UPDATE idempotency SET owner = '' WHERE id = ? AND status IS NULL", (_name(who, key),))


def _name(who: str, key: str) -> bytes:
    return hashlib.sha256(f"{who}\0{key}".encode()).digest()


def _bound_number(db: sqlite3.Connection, owner: str) -> None:
    db.execute(
        "DELETE FROM idempotency WHERE (status IS NOT NULL OR owner != ?) AND id IN "
        "(SELECT id FROM idempotency ORDER BY at_ms DESC, id LIMIT -1 OFFSET ?)",
        (owner, MOST_KEYS),
    )


def _bound_bytes(db: sqlite3.Connection) -> None:
    """Of the oldest it is known that they were done, and no more what they answered."""
    while db.execute("SELECT coalesce(sum(bytes), 0) FROM idempotency").fetchone()[0] > MOST_BYTES:
        db.execute(
            "UPDATE idempotency SET answer = NULL, bytes = 0 WHERE id IN "
            "(SELECT id FROM idempotency WHERE bytes > 0 ORDER BY at_ms, id LIMIT 1)"
        )
