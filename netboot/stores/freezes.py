"""The freeze, in `data/intents.db`: `netboot.lifecycle.intents.FreezeStore`."""

import sqlite3
from pathlib import Path

from netboot.machines.maintenance import Freeze, frozen
from netboot.stores.intents import opened


class SqliteFreezes:
    """There is one freeze or none. Safe for threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def standing(self, now_ms: int) -> Freeze | None:
        with opened(self._path, "ro") as db:
            return _standing(db, now_ms)

    def put(self, asked: Freeze) -> tuple[Freeze, str]:
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            freeze, did = frozen(_standing(db, asked.since_ms), asked)
            row = (freeze.who, freeze.reason, freeze.since_ms, freeze.until_ms)
            db.execute("INSERT OR REPLACE INTO freezes VALUES (1, ?, ?, ?, ?)", row)
            db.execute("COMMIT")
        return freeze, did

    def end(self, now_ms: int) -> Freeze | None:
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            before = _standing(db, now_ms)
            db.execute("DELETE FROM freezes")
            db.execute("COMMIT")
        return before


def _standing(db: sqlite3.Connection, now_ms: int) -> Freeze | None:
    row = db.execute("SELECT who, reason, since_ms, until_ms FROM freezes").fetchone()
    if row is None:
        return None
    freeze = Freeze.model_validate(dict(zip(Freeze.model_fields, row, strict=True)))
    return freeze if freeze.stands(now_ms) else None
