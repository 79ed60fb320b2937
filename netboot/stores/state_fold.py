"""What records make of the rows of `data/state.db`: boots, claims, reports, sightings, the feed; within a transaction
of `netboot.stores.state_writer`, whose part this is."""

import logging
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from netboot.lifecycle import state
from netboot.lifecycle.bootid import AHEAD_MS, minted_ms
from netboot.lifecycle.events import (
    AnyRecord,
    CertificateRecord,
    ConsoleRecord,
    CrashRecord,
    DiscoveryRecord,
    EventRecord,
    HardwareRecord,
    ScriptRecord,
    SharedRecord,
    TraceRecord,
    WaitRecord,
)
from netboot.lifecycle.phases import Phase, source_of
from netboot.lifecycle.state import FeedEntry
from netboot.lifecycle.trace import Trace, apply
from netboot.stores import state_machines, state_reports, state_rows, state_sightings, state_texts
from netboot.stores.packing import pack
from netboot.stores.state_rows import BOOTS, WAITS

log = logging.getLogger(__name__)

_TOLD = EventRecord | CrashRecord | ConsoleRecord | CertificateRecord | SharedRecord
_NO_STEPS = CertificateRecord | SharedRecord
_AT_ONCE = 500
"""Boots asked for with one query; SQLite takes at least 999 values (sqlite.org/limits.html)."""


class Row(NamedTuple):
    """A record with its id. `arrived`: its number, see `netboot.lifecycle.arrivals`; `again`: it was counted before its
    journal was replaced by an older copy of itself."""

    id: int
    record: AnyRecord
    arrived: int
    again: bool = False


@dataclass(slots=True)
class _Boot:
    """A boot while a batch is folded into it. `since`: the number of the fact that gave it its standing; `fed`: how
    many entries of the feed it has had; `texts`: told in this batch."""

    trace: Trace | None = None
    fed: int = 0
    standing: int = -1
    since: int = 0
    texts: list[CrashRecord | ConsoleRecord] = field(default_factory=list)


def project(db: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Take records over; whatever is raised, the transaction is not to be committed."""
    records = [row.record for row in rows]
    scripts = [record for record in records if isinstance(record, ScriptRecord)]
    told = [record for record in records if isinstance(record, _TOLD)]
    known = _known(db, [*{record.boot for record in scripts} | {record.boot for record in told}])
    worth = _worth_keeping(scripts, {record.boot for record in told} | known.keys())
    kept = [
        (row, row.record)
        for row in rows
        if isinstance(row.record, _TOLD) or (isinstance(row.record, ScriptRecord) and row.record.boot in worth)
    ]
    _fold(db, kept, known)
    new = [row for row in rows if not row.again]
    _count_claims(db, [row.record for row in new if isinstance(row.record, ScriptRecord)])
    _keep_waits(db, [row.record for row in new if isinstance(row.record, WaitRecord)])
    machines = {record.machine for record in told}
    _prune_boots(db, {record.machine for _, record in kept}, machines)
    state_texts.prune_consoles(db, {record.machine for record in told if isinstance(record, ConsoleRecord)})
    state_sightings.keep(db, [(row.arrived, row.record) for row in new if isinstance(row.record, DiscoveryRecord)])
    told_of = [(row.arrived, row.record) for row in rows if isinstance(row.record, HardwareRecord)]
    state_sightings.keep_hardware(db, told_of)
    found = (state_reports.report_of(row.arrived, row.record) for row in rows)
    reports = [report for report in found if report is not None]
    state_reports.keep(db, reports)
    state_machines.refresh(db, machines | {report.record.machine for report in reports})
    if kept:
        db.execute("DELETE FROM feed WHERE id <= (SELECT max(id) FROM feed) - ?", (state.FEED_KEPT,))


def _worth_keeping(scripts: Iterable[ScriptRecord], heard_of: set[str]) -> set[str]:
    """Boots whose scripts are written down one by one; of the others a storm of claims leaves the number alone."""
    of_machine: dict[str, dict[str, None]] = defaultdict(dict)
    for record in scripts:
        of_machine[record.machine][record.boot] = None
    worth: set[str] = set()
    for boots in of_machine.values():
        newest = list(reversed(boots))
        worth.update(newest[: state.CLAIMS_KEPT])
        worth.update(boot for boot in newest[state.CLAIMS_KEPT :] if boot in heard_of)
    return worth


def _fold(db: sqlite3.Connection, records: Iterable[tuple[Row, TraceRecord]], known: dict[str, _Boot]) -> None:
    """Each boot is read and written once, however many records of it there are; the feed keeps their order."""
    boots: dict[str, _Boot] = {}
    feed: list[tuple[str]] = []
    for row, record in records:
        boot = boots.get(record.boot)
        if boot is None:
            boot = boots[record.boot] = known.get(record.boot) or _Boot()
        before = boot.trace
        try:
            boot.trace = apply(before, record)
        except ValueError as error:
            log.warning("left out: %s", error)  # a boot id is of one machine only; this one was not minted here
            continue
        standing, shared = state.standing_by(record), isinstance(record, SharedRecord)
        if standing > boot.standing or (shared and standing == boot.standing and row.arrived < boot.since):
            boot.standing, boot.since = standing, row.arrived
            if not shared:
                _doubt(record)
        new = boot.trace is not before
        if isinstance(record, CrashRecord | ConsoleRecord):  # no step of this boot
            boot.texts.append(record)
        elif not isinstance(record, _NO_STEPS) and new and not row.again and boot.fed < state.FEED_PER_BOOT:
            boot.fed += 1
            feed.append((_entry(record).model_dump_json(),))
    db.executemany("INSERT INTO feed (body) VALUES (?)", feed)
    folded = [(boot, boot.trace) for boot in boots.values() if boot.trace is not None]
    images = state_machines.images(db, {trace.script.image for _, trace in folded if trace.script is not None})
    db.executemany(
        "INSERT OR REPLACE INTO boots (boot, machine, standing, since, state, image, trace, fed) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [_columns(boot, trace, images) for boot, trace in folded],
    )
    for boot, trace in folded:
        if boot.texts:
            state_texts.keep(db, trace, boot.texts)


def _doubt(record: TraceRecord) -> None:
    """Say of a boot whose id is of a later moment than what is heard of it, that some clock is or was wrong."""
    ahead = minted_ms(record.boot) - record.at_ms
    if ahead > AHEAD_MS:
        words = "the id of boot %s of %s is %d s ahead of the clock: it was set back since, or is wrong now"
        fields = {"machine": record.machine, "boot": record.boot}
        log.warning(words, record.boot, record.machine, ahead // 1_000, extra={"fields": fields})


def _columns(boot: _Boot, trace: Trace, images: Mapping[str, int]) -> tuple[object, ...]:
    image = images[trace.script.image] if trace.script is not None else None
    body = pack(trace.model_dump_json(exclude_defaults=True))
    return trace.boot, trace.machine, int(boot.standing), boot.since, trace.state, image, body, boot.fed


def _known(db: sqlite3.Connection, boots: Sequence[str]) -> dict[str, _Boot]:
    """Those of the boots that are in the state already; asked for by the hundred, for a storm brings thousands."""
    known = {}
    for start in range(0, len(boots), _AT_ONCE):
        some = boots[start : start + _AT_ONCE]
        holes = ", ".join("?" * len(some))
        query = f"SELECT boot, trace, fed, standing, since FROM boots WHERE boot IN ({holes})"  # noqa: S608
        for boot, body, fed, standing, since in db.execute(query, some).fetchall():
            trace = state_rows.parse_or_set_aside(db, BOOTS, boot, body)
            if trace is not None:
                known[boot] = _Boot(trace, fed, standing, since)
    return known


def _entry(record: ScriptRecord | EventRecord) -> FeedEntry:
    phase, uptime_ms, detail = Phase.SCRIPT_SERVED, None, ""
    if isinstance(record, EventRecord):
        phase, uptime_ms, detail = record.phase, record.uptime_ms, record.detail
    return FeedEntry(
        id=0,
        at_ms=record.at_ms,
        boot=record.boot,
        machine=record.machine,
        phase=phase,
        source=source_of(phase),
        uptime_ms=uptime_ms,
        detail=detail,
    )


def _count_claims(db: sqlite3.Connection, scripts: Iterable[ScriptRecord]) -> None:
    counted: dict[str, tuple[int, int]] = {}
    for record in scripts:
        times, _ = counted.get(record.machine, (0, 0))
        counted[record.machine] = (times + 1, record.at_ms)
    db.executemany(
        "INSERT INTO claims (machine, served, last_ms) VALUES (?, ?, ?) ON CONFLICT (machine) DO UPDATE SET "
        "served = served + excluded.served, last_ms = excluded.last_ms",
        [(machine, times, last_ms) for machine, (times, last_ms) in counted.items()],
    )


def _keep_waits(db: sqlite3.Connection, records: Iterable[WaitRecord]) -> None:
    latest: dict[str, state.Waited | None] = {}
    for record in records:
        if record.machine not in latest:
            latest[record.machine] = state_rows.stored(db, WAITS, record.machine)
        latest[record.machine] = state.waited(latest[record.machine], record)
    db.executemany(
        "INSERT OR REPLACE INTO waits (machine, body) VALUES (?, ?)",
        [(machine, waited.model_dump_json()) for machine, waited in latest.items() if waited is not None],
    )


def _prune_boots(db: sqlite3.Connection, claimed: Iterable[str], told: Iterable[str]) -> None:
    """Each standing is pruned by itself, so that no number of claims or reports pushes out a proven boot; in each go
    those that have it longest, so that the current boot never goes."""
    claim = state.Standing.CLAIMED
    db.executemany(
        "DELETE FROM boots WHERE boot IN (SELECT boot FROM boots WHERE machine = ? AND standing = ? "
        "ORDER BY since DESC, boot DESC LIMIT -1 OFFSET ?)",
        [
            *((machine, int(claim), state.KEPT[claim]) for machine in claimed),
            *((m, int(standing), most) for m in told for standing, most in state.KEPT.items() if standing != claim),
        ],
    )
