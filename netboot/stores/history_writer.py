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
    PROOFS_IN_ALL,
    PROOFS_KEPT,
    TRANSITIONS_IN_ALL,
    TRANSITIONS_KEPT,
    Begun,
    Found,
    HistoryLostError,
    KnownBoot,
    Seen,
    Transition,
)
from netboot.lifecycle.objective import MOST_SERIES, Durations, Measured, together
from netboot.lifecycle.proof import SignedProof
from netboot.stores.commits import which
from netboot.stores.history import durations_in, opened
from netboot.stores.packing import pack

_UNDER_WAY = (
    "SELECT boot, machine, ready, in_service_ms, exact, over, counted FROM boots "
    "WHERE begun = 1 AND (counted = 0 OR proven = 0)"
)
_BEGIN = (
    "INSERT INTO boots (boot, machine, begun, counted, proven) VALUES (:boot, :machine, 1, :over, :over) "
    "ON CONFLICT (boot) DO UPDATE SET begun = 1, counted = :over, proven = :over"
)
_IN_SERVICE = (
    "INSERT INTO boots (boot, machine, in_service_ms, exact) VALUES (?, ?, ?, ?) ON CONFLICT (boot) DO UPDATE "
    "SET in_service_ms = excluded.in_service_ms, exact = excluded.exact WHERE in_service_ms IS NULL"
)
_PRUNE_ALL_TRANSITIONS = "DELETE FROM transitions WHERE id <= (SELECT max(id) FROM transitions) - ?"
_PROOF = "INSERT OR IGNORE INTO proofs (boot, machine, proof, signature) VALUES (?, ?, ?, ?)"
_PRUNE_PROOFS = (
    "DELETE FROM proofs WHERE machine = :machine AND number <= "
    "(SELECT number FROM proofs WHERE machine = :machine ORDER BY number DESC LIMIT 1 OFFSET :kept)"
)
_PRUNE_ALL_PROOFS = (
    "DELETE FROM proofs WHERE number <= (SELECT number FROM proofs ORDER BY number DESC LIMIT 1 OFFSET ?)"
)
SELDOM = 1_000
"""Proofs between two looks at how many there are in all, which reads as many rows of an index."""
_PRUNE_DECISIONS = "DELETE FROM decisions WHERE number <= (SELECT max(number) FROM decisions) - ?"
_PRUNE_BOOTS = (
    "DELETE FROM boots WHERE machine = :machine AND number <= "
    "(SELECT number FROM boots WHERE machine = :machine ORDER BY number DESC LIMIT 1 OFFSET :kept)"
)
_PRUNE_TRANSITIONS = (
    "DELETE FROM transitions WHERE machine = :machine AND id <= "
    "(SELECT id FROM transitions WHERE machine = :machine ORDER BY id DESC LIMIT 1 OFFSET :kept)"
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
        self._which: dict[Path, tuple[int, int] | None] = {}
        """The file that is open, and what SQLite keeps beside it."""

    def begin(self, proven: Mapping[str, Sequence[str]]) -> Begun:
        new: list[str] = []
        with self._transaction() as db:
            for machine, boots in proven.items():
                rows = db.execute("SELECT boot FROM boots WHERE machine = ? AND begun = 1", (machine,)).fetchall()
                known = {boot for (boot,) in rows}
                unknown = [boot for boot in boots if boot not in known]
                worth = unknown if known else unknown[-1:]
                db.executemany(
                    _BEGIN, [{"boot": boot, "machine": machine, "over": boot not in worth} for boot in unknown]
                )
                over = [(boot,) for boot in boots[:-1]]
                db.executemany("UPDATE boots SET over = 1 WHERE boot = ? AND over = 0 AND counted = 0", over)
                if unknown:
                    db.execute(_PRUNE_BOOTS, {"machine": machine, "kept": BOOTS_KEPT})
                new += worth
            return Begun(new, _under_way(db, "machine", proven))

    def forget(self, machines: Collection[str]) -> None:
        with self._transaction() as db:
            for table in ("boots", "conditions", "transitions"):
                db.executemany(f"DELETE FROM {table} WHERE machine = ?", [(name,) for name in machines])  # noqa: S608

    def machines(self) -> set[str]:
        with self._usable() as db:
            return {name for (name,) in db.execute("SELECT DISTINCT machine FROM boots")}

    def judged(self) -> set[str]:
        with self._usable() as db:
            return {name for (name,) in db.execute("SELECT DISTINCT machine FROM conditions")}

    def under_way(self, boots: Sequence[str] | None = None) -> list[KnownBoot]:
        with self._usable() as db:
            return _under_way(db, "boot", boots)

    def note(
        self, judged: Iterable[tuple[Judged, int]], gone: Collection[str] = (), in_service: Iterable[Seen] = ()
    ) -> None:
        with self._transaction() as db:
            db.executemany("DELETE FROM conditions WHERE machine = ?", [(name,) for name in gone])
            for one, at_ms in judged:
                changed = _transitions(db, one, at_ms)
                if changed:
                    db.execute(_PRUNE_TRANSITIONS, {"machine": one.machine, "kept": TRANSITIONS_KEPT})
            db.executemany(_IN_SERVICE, list(in_service))
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
        with self._transaction() as db:
            for (target, hardware, image), some in together(found.measured).items():
                _count(db, Durations(target=target, hardware=hardware, image=image), some)
            db.executemany("UPDATE boots SET ready = 1 WHERE boot = ?", [(boot,) for boot in found.ready])
            db.executemany("UPDATE boots SET counted = 1 WHERE boot = ?", [(boot,) for boot in found.counted])
            if found.measured:
                db.execute(_PRUNE_SERIES, (MOST_SERIES,))

    def prove(self, proofs: Mapping[tuple[str, str], SignedProof], proven: Collection[str]) -> None:
        with self._transaction() as db:
            for (boot, machine), proof in proofs.items():
                made = db.execute(_PROOF, (boot, machine, proof.proof, proof.signature))
                db.execute(_PRUNE_PROOFS, {"machine": machine, "kept": PROOFS_KEPT})
                if made.rowcount > 0 and (made.lastrowid or 0) % SELDOM == 0:
                    db.execute(_PRUNE_ALL_PROOFS, (PROOFS_IN_ALL,))
            db.executemany("UPDATE boots SET proven = 1 WHERE boot = ?", [(boot,) for boot in proven])

    def has_proofs(self) -> bool:
        """Whether any boot was ever proven."""
        with self._usable() as db:
            return db.execute("SELECT 1 FROM proofs LIMIT 1").fetchone() is not None

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
            self._require_same()
            if self._db is None:
                self._db = opened(self._path)
                beside = (self._path.with_name(self._path.name + suffix) for suffix in ("-wal", "-shm"))
                self._which = {path: which(path) for path in (self._path, *beside)}
            yield self._db
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StateUnavailableError(f"{self._path} cannot be written: {error}; it is tried again") from None
        except BaseException:
            self.close()  # rolls back
            raise

    def _require_same(self) -> None:
        """The file that is open is the one that others find."""
        if self._db is None or which(self._path) == self._which[self._path]:
            return
        self.close()
        for path, known in self._which.items():  # what was beside it would be read into another file
            if path != self._path and which(path) == known:
                path.unlink(missing_ok=True)
        raise HistoryLostError(f"{self._path} was removed or replaced while it was in use")


def _under_way(db: sqlite3.Connection, column: str, values: Iterable[str] | None) -> list[KnownBoot]:
    """All, or those of which a column has one of these values."""
    if values is None:
        rows = db.execute(_UNDER_WAY).fetchall()
    else:
        query = f"{_UNDER_WAY} AND {column} = ?"  # the column is one of ours
        rows = [row for value in values for row in db.execute(query, (value,))]
    return [
        KnownBoot(boot, machine, bool(ready), at_ms, bool(exact), bool(over), bool(counted))
        for boot, machine, ready, at_ms, exact, over, counted in rows
    ]


def _transitions(db: sqlite3.Connection, judged: Judged, at_ms: int) -> bool:
    """Write down which conditions are not what they were; whether any."""
    query = "SELECT type, status, reason FROM conditions WHERE machine = ?"
    before = {kind: (status, reason) for kind, status, reason in db.execute(query, (judged.machine,))}
    changed = [each for each in judged.conditions if before.get(each.type) != (each.status, each.reason)]
    for each in changed:
        fields = each.model_dump(exclude={"since_ms", "said"})
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


def _count(db: sqlite3.Connection, none: Durations, measured: Iterable[Measured]) -> None:
    """Some of one target, class and image; `none`: what is known where nothing was counted before."""
    key = (none.target, none.hardware, none.image)
    query = "SELECT body FROM durations WHERE target = ? AND hardware = ? AND image = ?"
    row = db.execute(query, key).fetchone()
    durations = (durations_in(row[0]) if row else None) or none
    for one in measured:
        durations = durations.plus(one)
    db.execute(
        "INSERT OR REPLACE INTO durations (target, hardware, image, body, last) "
        "VALUES (?, ?, ?, ?, (SELECT coalesce(max(last), 0) + 1 FROM durations))",
        (*key, durations.model_dump_json()),
    )
