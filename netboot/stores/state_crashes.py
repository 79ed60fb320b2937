"""The table `crashes` of `data/state.db`: the texts that traces name; within a transaction of
`netboot.stores.state_writer`, whose part this is."""

import sqlite3
from collections.abc import Iterable

from netboot.lifecycle.events import CrashRecord
from netboot.lifecycle.trace import Trace
from netboot.stores.packing import pack


def keep(db: sqlite3.Connection, trace: Trace, found: Iterable[CrashRecord]) -> None:
    """The texts that the trace names, and no others: it says which crashes of a boot are kept. One that is sent again
    takes the place of what was there, which may have been damaged."""
    named = {crash.sha256 for crash in trace.crashes}
    told = {record.sha256: record for record in found}
    db.executemany(
        "INSERT OR REPLACE INTO crashes (boot, sha256, body) VALUES (?, ?, ?)",
        [(trace.boot, sha256, pack(told[sha256].model_dump_json())) for sha256 in named & told.keys()],
    )
    stored = [sha256 for (sha256,) in db.execute("SELECT sha256 FROM crashes WHERE boot = ?", (trace.boot,)).fetchall()]
    dropped = [(trace.boot, sha256) for sha256 in stored if sha256 not in named]
    db.executemany("DELETE FROM crashes WHERE boot = ? AND sha256 = ?", dropped)
