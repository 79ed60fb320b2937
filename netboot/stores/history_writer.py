"""Writing `data/history.db`: `netboot.lifecycle.history.HistoryWriter`. One process writes, the controllers'."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.decided import Decided
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.history import (
    BOOTS_KEPT,
    DECISIONS_KEPT,
    PROOFS_KEPT,
    TRANSITIONS_IN_ALL,
    TRANSITIONS_KEPT,
    Found,
    KnownBoot,
    Transition,
)
from netboot.lifecycle.objective import MOST_SERIES, Durations, Measured
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.stores.history import SCHEMA, VERSION, version_of
from netboot.stores.packing import pack
from netboot.stores.state_rows import lenient

_UNDER_WAY = "SELECT boot, machine, ready, in_service_ms, over FROM boots WHERE done = 0"
_IN_SERVICE = (
    "INSERT INTO boots (boot, machine, in_service_ms) VALUES (?, ?, ?) "
    "ON CONFLICT (boot) DO UPDATE SET in_service_ms = coalesce(in_service_ms, excluded.in_service_ms)"
)
_PRUNE_ALL_TRANSITIONS = "DELETE FROM transitions WHERE id <= (SELECT max(id) FROM transitions) - ?"
_PROOF = "INSERT OR IGNORE INTO proofs (boot, machine, proof, signature) VALUES (?, ?, ?, ?)"
_PRUNE_PROOFS = (
    "DELETE FROM proofs WHERE machine = ?1 AND number <= "
    "(SELECT number FROM proofs WHERE machine = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)"
)
_PRUNE_DECISIONS = "DELETE FROM decisions WHERE number <= (SELECT max(number) FROM decisions) - ?"
_PRUNE_BOOTS = (
    "DELETE FROM boots WHERE machine = ?1 AND number <= "
    "(SELECT number FROM boots WHERE machine = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)"
)
_PRUNE_TRANSITIONS = (
    "DELETE FROM transitions WHERE machine = ?1 AND id <= "
    "(SELECT id FROM transitions WHERE machine = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)"
)
_PRUNE_SERIES = (
    "DELETE FROM durations WHERE (hardware, image) NOT IN "
    "(SELECT hardware, image FROM durations GROUP BY hardware, image ORDER BY max(last) DESC LIMIT ?)"
)


class HistoryFile:
    """Opened when first used, and again after any failure, so that a disk that comes back is used again. What it has
    committed has survived a power cut: nothing makes these counts anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None

    def begin(self, proven: Mapping[str, Sequence[str]]) -> list[str]:
        begun: list[str] = []
        with self._transaction() as db:
            for machine, boots in proven.items():
                rows = db.execute("SELECT boot FROM boots WHERE machine = ?", (machine,)).fetchall()
                known = {boot for (boot,) in rows}
                new = [boot for boot in boots if boot not in known]
                worth = new if known else new[-1:]
                db.executemany(
                    "INSERT INTO boots (boot, machine, done) VALUES (?, ?, ?)",
                    [(boot, machine, boot not in worth) for boot in new],
                )
                over = [(boot,) for boot in boots[:-1]]
                db.executemany("UPDATE boots SET over = 1 WHERE boot = ? AND done = 0", over)
                db.execute(_PRUNE_BOOTS, (machine, BOOTS_KEPT))
                begun += worth
        return begun

    def forget(self, machines: Collection[str]) -> None:
        with self._transaction() as db:
            for table in ("boots", "conditions", "transitions"):
                db.executemany(f"DELETE FROM {table} WHERE machine = ?", [(name,) for name in machines])  # noqa: S608

    def machines(self) -> set[str]:
        with self._usable() as db:
            return {name for (name,) in db.execute("SELECT DISTINCT machine FROM boots")}

    def under_way(self, boots: Sequence[str] | None = None) -> list[KnownBoot]:
        with self._usable() as db:
            if boots is None:
                rows = db.execute(_UNDER_WAY).fetchall()
            else:
                rows = [row for boot in boots for row in db.execute(f"{_UNDER_WAY} AND boot = ?", (boot,))]
        return [KnownBoot(boot, name, bool(ready), at_ms, bool(over)) for boot, name, ready, at_ms, over in rows]

    def note(self, judged: Iterable[tuple[Judged, int]], gone: Collection[str] = ()) -> None:
        with self._transaction() as db:
            db.executemany("DELETE FROM conditions WHERE machine = ?", [(name,) for name in gone])
            for one, at_ms in judged:
                changed = _transitions(db, one, at_ms)
                if changed:
                    db.execute(_PRUNE_TRANSITIONS, (one.machine, TRANSITIONS_KEPT))
                condition = one.condition(ConditionType.IN_SERVICE)
                if one.boot and condition is not None and condition.reason is Reason.IN_SERVICE:
                    db.execute(_IN_SERVICE, (one.boot, one.machine, at_ms))
            db.execute(_PRUNE_ALL_TRANSITIONS, (TRANSITIONS_IN_ALL,))

    def undecided(self, digests: Collection[str]) -> set[str]:
        query = "SELECT 1 FROM decisions WHERE digest = ?"
        with self._usable() as db:
            return {digest for digest in digests if db.execute(query, (digest,)).fetchone() is None}

    def keep(self, decided: Sequence[Decided]) -> None:
        rows = [(each.digest, pack(each.model_dump_json())) for each in decided]
        with self._transaction() as db:
            db.executemany("INSERT OR IGNORE INTO decisions (digest, body) VALUES (?, ?)", rows)
            db.execute(_PRUNE_DECISIONS, (DECISIONS_KEPT,))

    def count(self, found: Found) -> None:
        measured, ready, done = found.measured, found.ready, found.done
        with self._transaction() as db:
            for one in measured:
                _count(db, one)
            for (boot, machine), proof in found.proofs.items():
                db.execute(_PROOF, (boot, machine, proof.proof, proof.signature))
                db.execute(_PRUNE_PROOFS, (machine, PROOFS_KEPT))
            db.executemany("UPDATE boots SET ready = 1 WHERE boot = ?", [(boot,) for boot in ready])
            db.executemany("UPDATE boots SET done = 1 WHERE boot = ?", [(boot,) for boot in done])
            if measured:
                db.execute(_PRUNE_SERIES, (MOST_SERIES,))

    def close(self) -> None:
        """Close the file; it is opened again when used again."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db = None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._usable() as db:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")

    @contextmanager
    def _usable(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._db is None:
                self._db = _opened(self._path)
            yield self._db
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StateUnavailableError(f"{self._path} cannot be written: {error}; it is tried again") from None
        except BaseException:
            self.close()  # rolls back
            raise


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=2.0, isolation_level=None, check_same_thread=False)
    try:
        lenient(db)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        _migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    version = version_of(db)
    if version > VERSION:
        raise StateUnavailableError(f"{path} was written by a newer netboot (schema {version}); run that version")
    for number in range(version, VERSION):
        db.executescript(f"BEGIN IMMEDIATE; {SCHEMA[number]}; PRAGMA user_version = {number + 1}; COMMIT")


def _transitions(db: sqlite3.Connection, judged: Judged, at_ms: int) -> bool:
    """Write down which conditions are not what they were; whether any."""
    query = "SELECT type, status, reason FROM conditions WHERE machine = ?"
    before = {kind: (status, reason) for kind, status, reason in db.execute(query, (judged.machine,))}
    changed = [each for each in judged.conditions if before.get(each.type) != (each.status, each.reason)]
    for each in changed:
        fields = each.model_dump(exclude={"since_ms"})
        transition = Transition.model_validate({"id": 0, "at_ms": at_ms, "machine": judged.machine, **fields})
        db.execute(
            "INSERT INTO transitions (machine, type, body) VALUES (?, ?, ?)",
            (judged.machine, each.type, transition.model_dump_json()),
        )
        db.execute(
            "INSERT OR REPLACE INTO conditions (machine, type, status, reason) VALUES (?, ?, ?, ?)",
            (judged.machine, each.type, each.status, each.reason),
        )
    return bool(changed)


def _count(db: sqlite3.Connection, one: Measured) -> None:
    key = (one.target, one.hardware, one.image)
    query = "SELECT body FROM durations WHERE target = ? AND hardware = ? AND image = ?"
    row = db.execute(query, key).fetchone()
    known = Durations(target=one.target, hardware=one.hardware, image=one.image)
    durations = (Durations.model_validate_json(row[0]) if row else known).plus(one)
    db.execute(
        "INSERT OR REPLACE INTO durations (target, hardware, image, body, last) "
        "VALUES (?, ?, ?, ?, (SELECT coalesce(max(last), 0) + 1 FROM durations))",
        (*key, durations.model_dump_json()),
    )
