"""Sightings of machines that may not boot, and what they are made of, as rows of `data/state.db`; within a transaction
of `netboot.stores.state_fold`, whose part this is."""

import sqlite3
from collections.abc import Iterable

from netboot.lifecycle import state
from netboot.lifecycle.events import DiscoveryRecord, HardwareRecord
from netboot.lifecycle.hardware import MOST_MACHINES
from netboot.lifecycle.sightings import Discovered, Told, seen_again, sighting, told_again
from netboot.stores import state_rows
from netboot.stores.packing import pack
from netboot.stores.state_rows import DISCOVERED, HARDWARE


def keep(db: sqlite3.Connection, records: Iterable[tuple[int, DiscoveryRecord]]) -> None:
    """One entry for each machine, the latest of all; `records`: each behind its number of arrival."""
    seen: dict[str, tuple[int, Discovered]] = {}
    for arrived, record in records:
        new = sighting(record)
        seen[new.key] = (arrived, seen_again(seen[new.key][1] if new.key in seen else None, new))
    for key, (arrived, new) in seen.items():
        both = seen_again(state_rows.stored(db, DISCOVERED, key), new)
        db.execute(
            "INSERT OR REPLACE INTO discovered (key, last_ms, body, arrived) VALUES (?, ?, ?, ?)",
            (key, both.last_ms, both.model_dump_json(), arrived),
        )
    if seen:
        over = db.execute("SELECT count(*) FROM discovered").fetchone()[0] - state.DISCOVERED_KEPT
        if over > 0:
            query = "DELETE FROM discovered WHERE key IN (SELECT key FROM discovered ORDER BY arrived, key LIMIT ?)"
            db.execute(query, (over,))


def keep_hardware(db: sqlite3.Connection, records: Iterable[tuple[int, HardwareRecord]]) -> None:
    """The report of each machine that arrived last, and of all machines those of the last `MOST_MACHINES`; `records`:
    as above."""
    latest: dict[str, tuple[int, Told]] = {}
    for arrived, record in records:
        mac = record.report.mac
        if mac not in latest:
            row = db.execute("SELECT arrived FROM hardware WHERE mac = ?", (mac,)).fetchone()
            known = state_rows.stored(db, HARDWARE, mac)
            if row is not None and known is not None:
                latest[mac] = (row[0], known)
        last, before = latest.get(mac, (0, None))
        if arrived >= last:
            latest[mac] = (arrived, told_again(before, record))
    db.executemany(
        "INSERT OR REPLACE INTO hardware (mac, at_ms, body, arrived) VALUES (?, ?, ?, ?)",
        [(mac, told.at_ms, pack(told.model_dump_json()), arrived) for mac, (arrived, told) in latest.items()],
    )
    if latest:
        query = "DELETE FROM hardware WHERE mac NOT IN (SELECT mac FROM hardware ORDER BY arrived DESC, mac LIMIT ?)"
        db.execute(query, (MOST_MACHINES,))
