"""Reading `data/state.db`: `netboot.lifecycle.state.States` and `Sightings`. Its only writer is `state_writer`."""

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.events import HealthRecord
from netboot.lifecycle.state import Checked, Claims, Discovered, FeedEntry, MachineState, Standing
from netboot.lifecycle.trace import Trace
from netboot.stores.state_rows import BOOTS, DISCOVERED, FEED, HEALTH, S, Table, lenient, parse, parse_or_leave_out, why
from netboot.stores.state_schema import VERSION, version_of

log = logging.getLogger(__name__)

# A machine's current boot: first those that proved themselves, of them the last to do so; then the newest reported.
_PLACED = (
    "SELECT boot, row_number() OVER (PARTITION BY machine ORDER BY standing DESC, proven_ms DESC, boot DESC) AS place "
    "FROM boots WHERE standing > 0"
)
_SELECT = (
    "SELECT boots.machine, boots.boot, standing, state, trace, health.status, health.at_ms FROM ({}) "
    "JOIN boots USING (boot) LEFT JOIN health USING (boot) WHERE place = 1"
)
_CURRENT, _CURRENT_OF = _SELECT.format(_PLACED), _SELECT.format(f"{_PLACED} AND machine = ?")
_PENDING = "SELECT boot, trace FROM boots WHERE machine = ? AND standing = 1 AND boot > ? ORDER BY boot DESC LIMIT 1"
_COUNTS = f"SELECT state, count(*) FROM ({_CURRENT}) GROUP BY state"  # noqa: S608
_HEALTH_COUNTS = (
    "SELECT coalesce(iif(at_ms < ?, 'stale', status), 'none') AS found, count(*) "  # noqa: S608
    f"FROM ({_CURRENT}) GROUP BY found"
)


class SqliteStates:
    """Opens the file anew for each question: cheap, right for threads, and a file that was replaced is noticed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def machines(self, names: Sequence[str] | None = None) -> dict[str, MachineState]:
        with self._open() as db:
            if names is None:
                current = db.execute(_CURRENT).fetchall()
                claims = db.execute("SELECT machine, served, last_ms FROM claims").fetchall()
            else:
                current = [row for name in names for row in db.execute(_CURRENT_OF, (name,))]
                query = "SELECT machine, served, last_ms FROM claims WHERE machine = ?"
                claims = [row for name in names for row in db.execute(query, (name,))]
            proven = [(name, boot) for name, boot, standing, *_ in current if standing == Standing.PROVEN]
            waiting = {name: row for name, boot in proven for row in db.execute(_PENDING, (name, boot))}
        pending = {name: parse_or_leave_out(BOOTS, *row) for name, row in waiting.items()}
        states = {
            name: MachineState(
                machine=name,
                current=trace,
                pending=pending.get(name),
                checked=_checked(boot, status, at_ms),
            )
            for name, boot, _, _, body, status, at_ms in current
            if (trace := parse_or_leave_out(BOOTS, boot, body)) is not None
        }
        for name, served, last_ms in claims:
            state = states.get(name, MachineState(machine=name))
            states[name] = state.model_copy(update={"claims": Claims(served=served, last_ms=last_ms)})
        return states

    def counts(self) -> dict[str, int]:
        with self._open() as db:
            return dict(db.execute(_COUNTS))

    def health_counts(self, since_ms: int) -> dict[str, int]:
        with self._open() as db:
            return dict(db.execute(_HEALTH_COUNTS, (since_ms,)))

    def health(self, boot: str) -> HealthRecord | None:
        with self._open() as db:
            row = db.execute("SELECT body FROM health WHERE boot = ?", (boot,)).fetchone()
        return self._asked_for(HEALTH, boot, row[0]) if row else None

    def boots(self, machine: str | None, limit: int) -> list[Trace]:
        query = "SELECT boot, trace FROM boots WHERE ?1 IS NULL OR machine = ?1 ORDER BY boot DESC LIMIT ?2"
        with self._open() as db:
            rows = db.execute(query, (machine, limit)).fetchall()
        return [trace for row in rows if (trace := parse_or_leave_out(BOOTS, *row)) is not None]

    def boot(self, boot: str) -> Trace | None:
        with self._open() as db:
            row = db.execute("SELECT trace FROM boots WHERE boot = ?", (boot,)).fetchone()
        return self._asked_for(BOOTS, boot, row[0]) if row else None

    def discovered(self, limit: int) -> list[Discovered]:
        with self._open() as db:
            query = "SELECT key, body FROM discovered ORDER BY last_ms DESC, key LIMIT ?"
            rows = db.execute(query, (limit,)).fetchall()
        return [seen for row in rows if (seen := parse_or_leave_out(DISCOVERED, *row)) is not None]

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
        log.warning("the health report of boot %s cannot be read and is left out: %s", boot, why(error))
        return None
