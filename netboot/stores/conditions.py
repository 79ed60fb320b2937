"""`data/conditions.db`: what was found of machines. `netboot.lifecycle.conditions.Conditions` and `JudgedMachines`.

All of it can be found again from `state.db` and the clocks, but for the moments of transitions: a file that is lost or
damaged costs these, and no backup has it.
"""

import logging
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.summary import MachineSummary, summary_of
from netboot.stores.commits import Commits, which
from netboot.stores.state_rows import lenient, why

log = logging.getLogger(__name__)

VERSION = 1
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""The file, not the disk (sqlite.org/rescode.html)."""
_SCHEMA = (
    "BEGIN IMMEDIATE; DROP TABLE IF EXISTS judged; DROP TABLE IF EXISTS seen_time; "
    "CREATE TABLE judged (machine TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID; "
    "CREATE TABLE seen_time (place TEXT PRIMARY KEY, ms INTEGER NOT NULL) WITHOUT ROWID; "
    f"PRAGMA user_version = {VERSION}; COMMIT"
)


class SqliteConditions:
    """Opens the file anew for each question, as `SqliteStates` does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._glancing = threading.Lock()
        self._known: dict[str, tuple[int, MachineSummary]] = {}
        """With what the row was: its hash, which is shorter."""
        self._summaries: Mapping[str, MachineSummary] = {}
        self._file = Commits(path)

    def conditions(self, names: Sequence[str] | None = None) -> dict[str, tuple[MachineCondition, ...]]:
        return {name: judged.conditions for name, judged in self.judged(names).items()}

    def judged(self, names: Sequence[str] | None = None) -> dict[str, Judged]:
        return {judged.machine: judged for judged in _parsed(self._rows(names))}

    def summaries(self) -> Mapping[str, MachineSummary]:
        with self._glancing:
            if self._file.changed():
                known = {name: self._summary_of(name, body) for name, body in self._rows(None)}
                there = {name: each for name, each in known.items() if each is not None}
                if there != self._known:
                    self._known = there
                    self._summaries = MappingProxyType({name: found for name, (_, found) in there.items()})
                self._file.taken()
            return self._summaries

    def _summary_of(self, name: str, body: str) -> tuple[int, MachineSummary] | None:
        known, now = self._known.get(name), hash(body)
        if known is not None and known[0] == now:
            return known
        return next(((now, summary_of(each)) for each in _parsed([(name, body)])), None)

    def _rows(self, names: Sequence[str] | None) -> Sequence[tuple[str, str]]:
        if not self._path.exists():
            raise StateUnavailableError(f"{self._path} is not there yet: the controllers make it within a minute")
        try:
            with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0)) as db:
                lenient(db)
                if _version(db) != VERSION:
                    raise StateUnavailableError(f"{self._path} is of another version: the controllers make it anew")
                return _read(db, names)
        except sqlite3.Error as error:
            raise StateUnavailableError(f"{self._path} cannot be read: {error}") from None


class JudgedFile:
    """Opened when first used, and again after any failure; one that is no database, or of another version, is made
    anew: nothing is in it that is not found again. So is one that was removed or replaced since it was opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None

    def judged(self, names: Sequence[str]) -> dict[str, Judged]:
        with self._usable() as db:
            return {judged.machine: judged for judged in _parsed(_read(db, names))}

    def names(self) -> set[str]:
        with self._usable() as db:
            return {name for (name,) in db.execute("SELECT machine FROM judged")}

    def seen_time(self) -> dict[str, int]:
        with self._usable() as db:
            return dict(db.execute("SELECT place, ms FROM seen_time"))

    def keep(self, judged: Sequence[Judged], forget: Collection[str], seen_time: Mapping[str, int]) -> None:
        with self._usable() as db:
            db.execute("BEGIN IMMEDIATE")
            db.executemany(
                "INSERT OR REPLACE INTO judged (machine, body) VALUES (?, ?)",
                [(each.machine, each.model_dump_json()) for each in judged],
            )
            db.executemany("DELETE FROM judged WHERE machine = ?", [(name,) for name in forget])
            db.executemany("INSERT OR REPLACE INTO seen_time (place, ms) VALUES (?, ?)", list(seen_time.items()))
            db.execute("COMMIT")

    def close(self) -> None:
        """Close the file; it is opened again when used again."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db = None

    @contextmanager
    def _usable(self) -> Iterator[sqlite3.Connection]:
        try:
            self._require_same()
            if self._db is None:
                self._db = self._open()
                self._opened = which(self._path)
            yield self._db
        except (sqlite3.Error, OSError) as error:
            self.close()
            if getattr(error, "sqlite_errorcode", None) in _DAMAGED:
                self._remove(f"it is damaged: {error}")
            raise StateUnavailableError(f"{self._path} cannot be written: {error}; it is tried again") from None
        except BaseException:
            self.close()  # rolls back
            raise

    def _require_same(self) -> None:
        """The file that is open is the one that others find."""
        if self._db is not None and which(self._path) != self._opened:
            self.close()
            self._remove("it was removed or replaced while it was in use")
            raise StateUnavailableError(f"{self._path} was removed or replaced; it is made anew")

    def _open(self) -> sqlite3.Connection:
        try:
            return _opened(self._path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise  # the disk, not the file
            self._remove(f"it is damaged: {error}")
            return _opened(self._path)

    def _remove(self, reason: str) -> None:
        """With what SQLite keeps beside it, which belongs to another file than the next one."""
        log.warning("%s: %s; it is made anew, and moments of transitions are lost", self._path, reason)
        with suppress(OSError):  # a disk that refuses that too: the next try meets the same
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=2.0, isolation_level=None, check_same_thread=False)
    try:
        lenient(db)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        if _version(db) != VERSION:
            db.executescript(_SCHEMA)
    except BaseException:
        db.close()
        raise
    return db


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def _read(db: sqlite3.Connection, names: Sequence[str] | None) -> list[tuple[str, str]]:
    if names is None:
        return db.execute("SELECT machine, body FROM judged").fetchall()
    query = "SELECT machine, body FROM judged WHERE machine = ?"
    return [row for name in names for row in db.execute(query, (name,))]


def _parsed(rows: Iterable[tuple[str, str]]) -> Iterator[Judged]:
    """A row that cannot be read is as if it were not there: its machine is judged anew, which replaces it."""
    for name, body in rows:
        try:
            yield Judged.model_validate_json(body)
        except ValueError as error:
            log.warning("conditions of %s cannot be read and are found anew: %s", name, why(error))
