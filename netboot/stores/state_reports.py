"""The table `health` of `data/state.db`: the latest report of a boot; within a transaction of
`netboot.stores.state_writer`, whose part this is."""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from netboot.lifecycle import state
from netboot.lifecycle.events import AnyRecord, HealthRecord, SharedRecord
from netboot.stores import state_rows
from netboot.stores.packing import pack
from netboot.stores.state_rows import HEALTH


class Report(NamedTuple):
    """`whole`: it came here; else it is an excerpt, which does not take the place of what it is of."""

    arrived: int
    whole: bool
    record: HealthRecord


def report_of(arrived: int, record: AnyRecord) -> Report | None:
    """What a record says of a boot's health; None: nothing. `arrived`: its number."""
    if isinstance(record, HealthRecord):
        return Report(arrived, whole=True, record=record)
    if not isinstance(record, SharedRecord) or record.health is None:
        return None
    about = {"boot": record.boot, "machine": record.machine}
    return Report(record.arrived, whole=False, record=record.health.model_copy(update=about))


def keep(db: sqlite3.Connection, records: Iterable[Report]) -> None:
    """The latest of each boot, and of each machine and standing those of the newest boots."""
    latest: dict[str, tuple[int, HealthRecord]] = {}
    for arrived, whole, record in records:
        if record.boot not in latest:
            row = db.execute("SELECT arrived FROM health WHERE boot = ?", (record.boot,)).fetchone()
            known = state_rows.stored(db, HEALTH, record.boot)
            if row is not None and known is not None:
                latest[record.boot] = (row[0], known)
        if record.boot not in latest or arrived + whole > latest[record.boot][0]:
            latest[record.boot] = (arrived, record)
    db.executemany(
        "INSERT OR REPLACE INTO health (boot, machine, at_ms, status, body, arrived) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (r.boot, r.machine, r.at_ms, r.report.status, pack(r.model_dump_json(by_alias=True)), arrived)
            for arrived, r in latest.values()
        ],
    )
    db.executemany(
        "DELETE FROM health WHERE boot IN (SELECT boot FROM (SELECT boot, row_number() OVER (PARTITION BY "
        "coalesce(standing, 0) ORDER BY since DESC, arrived DESC, boot DESC) AS place "
        "FROM health LEFT JOIN boots USING (boot) WHERE health.machine = ?) WHERE place > ?)",
        [(machine, state.REPORTS_KEPT) for machine in {record.machine for _, record in latest.values()}],
    )
