"""Reading `data/state.db`: `netboot.lifecycle.state.States` and `Sightings`. Its only writer is `state_writer`."""

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

from netboot.lifecycle.errors import NoSuchBootError, StateUnavailableError
from netboot.lifecycle.events import ConsoleRecord, HealthRecord
from netboot.lifecycle.sightings import Discovered, Told
from netboot.lifecycle.state import Checked, Claims, FeedEntry, MachineState, Standing
from netboot.lifecycle.trace import Trace
from netboot.stores.state_rows import (
    BOOTS,
    CONSOLES,
    CRASHES,
    DISCOVERED,
    FEED,
    HARDWARE,
    HEALTH,
    WAITS,
    S,
    Table,
    lenient,
    parse,
    parse_or_leave_out,
    why,
)
from netboot.stores.state_schema import VERSION, version_of

log = logging.getLogger(__name__)

_CURRENT = (
    "SELECT machines.machine, machines.boot, current.trace, pending, waiting.trace, checked, checked_ms FROM machines "
    "LEFT JOIN boots AS current ON current.boot = machines.boot LEFT JOIN boots AS waiting ON waiting.boot = pending"
)
_CLAIMS = "SELECT machine, served, last_ms FROM claims"
_WAITS = "SELECT machine, body FROM waits"
_DECLARED = "machine NOT IN (SELECT machine FROM removed)"
_COUNTS = f"SELECT state, count(*) FROM machines WHERE {_DECLARED} GROUP BY state"  # noqa: S608
_HEALTH_COUNTS = (
    "SELECT coalesce(iif(checked_ms < ?, 'stale', checked), 'none') AS found, count(*) "  # noqa: S608
    f"FROM machines WHERE {_DECLARED} GROUP BY found"
)
_SINCE_READY = (
    "SELECT boot, trace FROM boots WHERE machine = :machine AND standing >= :least "
    "AND since > coalesce((SELECT since FROM boots WHERE machine = :machine AND standing = 2 AND state = 'Ready' "
    "ORDER BY since DESC LIMIT 1), -1) "
    "ORDER BY since DESC, boot DESC LIMIT :limit"
)
_RUNNING = "SELECT machine, digest FROM machines JOIN images ON images.id = machines.image"
_IMAGES = (
    "SELECT digest FROM images WHERE id IN (SELECT image FROM machines UNION SELECT pending_image FROM machines "
    "UNION SELECT image FROM (SELECT image FROM boots ORDER BY since DESC LIMIT ?))"
)


class SqliteStates:
    """Opens the file anew for each question: cheap, right for threads, and a file that was replaced is noticed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def machines(self, names: Sequence[str] | None = None) -> dict[str, MachineState]:
        with self._open() as db:
            if names is None:
                current = db.execute(_CURRENT).fetchall()
                claims, waits = db.execute(_CLAIMS).fetchall(), db.execute(_WAITS).fetchall()
            else:
                query = f"{_CURRENT} WHERE machines.machine = ?"
                current = [row for name in names for row in db.execute(query, (name,))]
                claims = [row for name in names for row in db.execute(f"{_CLAIMS} WHERE machine = ?", (name,))]
                waits = [row for name in names for row in db.execute(f"{_WAITS} WHERE machine = ?", (name,))]
        states = {
            name: MachineState(
                machine=name,
                current=trace,
                pending=parse_or_leave_out(BOOTS, pending, waiting) if pending is not None else None,
                checked=_checked(boot, status, at_ms),
            )
            for name, boot, body, pending, waiting, status, at_ms in current
            if (trace := parse_or_leave_out(BOOTS, boot, body)) is not None
        }
        for name, served, last_ms in claims:
            state = states.get(name, MachineState(machine=name))
            states[name] = state.model_copy(update={"claims": Claims(served=served, last_ms=last_ms)})
        for name, body in waits:
            if (waited := parse_or_leave_out(WAITS, name, body)) is not None:
                state = states.get(name, MachineState(machine=name))
                claims_too = state.claims.model_copy(update={"waited": waited})
                states[name] = state.model_copy(update={"claims": claims_too})
        return states

    def counts(self) -> dict[str, int]:
        with self._open() as db:
            return dict(db.execute(_COUNTS))

    def health_counts(self, since_ms: int) -> dict[str, int]:
        with self._open() as db:
            return dict(db.execute(_HEALTH_COUNTS, (since_ms,)))

    def removed(self) -> int:
        with self._open() as db:
            count: int = db.execute("SELECT count(*) FROM removed").fetchone()[0]
            return count

    def running(self) -> dict[str, str]:
        with self._open() as db:
            return dict(db.execute(_RUNNING))

    def images(self, latest: int) -> set[str]:
        with self._open() as db:
            return {digest for (digest,) in db.execute(_IMAGES, (latest,))}

    def health(self, boot: str) -> HealthRecord | None:
        with self._open() as db:
            row = db.execute("SELECT body FROM health WHERE boot = ?", (boot,)).fetchone()
        return self._asked_for(HEALTH, boot, row[0]) if row else None

    def boots(self, machine: str | None, limit: int, after: str | None = None) -> list[Trace]:
        query = "SELECT boot, trace FROM boots {} ORDER BY since DESC, boot DESC"
        wanted, values = ["machine = ?"] * (machine is not None), [machine] * (machine is not None)
        with self._open() as db:
            if after is not None:
                place = db.execute("SELECT since, boot FROM boots WHERE boot = ?", (after,)).fetchone()
                if place is None:
                    raise NoSuchBootError(after)
                wanted, values = [*wanted, "(since, boot) < (?, ?)"], [*values, *place]
            rows = db.execute(query.format(f"WHERE {' AND '.join(wanted)}" if wanted else ""), values)
            traces = (trace for row in rows if (trace := parse_or_leave_out(BOOTS, *row)) is not None)
            return list(islice(traces, limit))

    def since_ready(self, machine: str, least: Standing, limit: int) -> list[Trace]:
        with self._open() as db:
            rows = db.execute(_SINCE_READY, {"machine": machine, "least": int(least), "limit": limit}).fetchall()
        return [trace for row in rows if (trace := parse_or_leave_out(BOOTS, *row)) is not None]

    def boot(self, boot: str) -> Trace | None:
        with self._open() as db:
            row = db.execute("SELECT trace FROM boots WHERE boot = ?", (boot,)).fetchone()
        return self._asked_for(BOOTS, boot, row[0]) if row else None

    def numbers(self, boots: Sequence[str]) -> dict[str, tuple[int, int]]:
        query = "SELECT since, coalesce(arrived, 0) FROM boots LEFT JOIN health USING (boot) WHERE boots.boot = ?"
        with self._open() as db:
            return {boot: row for boot in boots for row in db.execute(query, (boot,))}

    def proven(self, machines: Sequence[str]) -> dict[str, tuple[str, ...]]:
        query = "SELECT boot FROM boots WHERE machine = ? AND standing = 2 ORDER BY since, boot"
        with self._open() as db:
            found = {name: tuple(boot for (boot,) in db.execute(query, (name,))) for name in machines}
        return {name: boots for name, boots in found.items() if boots}

    def proven_machines(self) -> set[str]:
        with self._open() as db:
            return {name for (name,) in db.execute("SELECT DISTINCT machine FROM boots WHERE standing = 2")}

    def crash_texts(self, boot: str) -> dict[str, str]:
        with self._open() as db:
            rows = db.execute("SELECT id, sha256, body FROM crashes WHERE boot = ?", (boot,)).fetchall()
        found = {sha256: parse_or_leave_out(CRASHES, number, body) for number, sha256, body in rows}
        return {sha256: record.text for sha256, record in found.items() if record is not None}

    def console(self, boot: str) -> ConsoleRecord | None:
        with self._open() as db:
            row = db.execute("SELECT body FROM consoles WHERE boot = ?", (boot,)).fetchone()
        return parse_or_leave_out(CONSOLES, boot, row[0]) if row else None

    def discovered(self, limit: int) -> list[Discovered]:
        with self._open() as db:
            query = "SELECT key, body FROM discovered ORDER BY arrived DESC, key LIMIT ?"
            rows = db.execute(query, (limit,)).fetchall()
        return [seen for row in rows if (seen := parse_or_leave_out(DISCOVERED, *row)) is not None]

    def hardware(self) -> list[Told]:
        with self._open() as db:
            rows = db.execute("SELECT mac, body FROM hardware ORDER BY arrived DESC, mac").fetchall()
        return [seen for row in rows if (seen := parse_or_leave_out(HARDWARE, *row)) is not None]

    def feed(self, after: int | None, limit: int) -> list[FeedEntry]:
        with self._open() as db:
            if after is None:
                rows = db.execute("SELECT id, body FROM feed ORDER BY id DESC LIMIT ?", (limit,)).fetchall()[::-1]
            else:
                rows = db.execute(
                    "SELECT id, body FROM feed WHERE id > ? ORDER BY id LIMIT ?", (after, limit)
                ).fetchall()
        return [
            entry.model_copy(update={"id": number})
            for number, body in rows
            if (entry := parse_or_leave_out(FEED, number, body)) is not None
        ]

    def _asked_for(self, table: Table[S], key: str, body: object) -> S:
        """The one row that was asked for: to leave it out would be to say that there never was one."""
        try:
            return parse(table, body)
        except ValueError as error:
            reason = f"{table.name} {key} in {self._path} cannot be read: {why(error)}"
            raise StateUnavailableError(f"{reason}; the controllers set it aside") from None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        if not self._path.exists():
            raise StateUnavailableError(f"{self._path} is not there yet: the controllers make it when they start")
        try:
            with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0)) as db:
                lenient(db)
                version = version_of(db)
                if version != VERSION:
                    raise StateUnavailableError(
                        f"{self._path} has schema {version}, this program wants {VERSION}: the controllers see to it, "
                        "unless it is newer"
                    )
                yield db
        except sqlite3.Error as error:
            raise StateUnavailableError(f"{self._path} cannot be read: {error}") from None


def _checked(boot: str, status: str | None, at_ms: int) -> Checked | None:
    if status is None:
        return None
    try:
        return Checked.model_validate({"status": status, "at_ms": at_ms})
    except ValueError as error:
        words = "the health report of boot %s cannot be read and is left out: %s"
        log.warning(words, boot, why(error), extra={"fields": {"boot": boot}})
        return None
