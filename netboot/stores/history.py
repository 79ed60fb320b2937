"""`data/history.db` for reading: `netboot.lifecycle.history.History`. Its only writer is `history_writer`."""

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from netboot.lifecycle.decided import Decided
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.history import Transition
from netboot.lifecycle.objective import Durations
from netboot.lifecycle.proof import SignedProof
from netboot.stores.packing import unpack
from netboot.stores.state_rows import lenient, why

log = logging.getLogger(__name__)

SCHEMA = (
    """
    -- boots that proved themselves, as they became known; `begun`: 0 while only a judgement has named it; `ready`:
    -- counted as such; `over`: a later one has proven itself; `counted`: nothing more is counted of it; `proven`: its
    -- proof is made, or will never be; `exact`: whether `in_service_ms` is when it came into service
    CREATE TABLE boots (
        number INTEGER PRIMARY KEY AUTOINCREMENT, boot TEXT NOT NULL UNIQUE, machine TEXT NOT NULL,
        begun INTEGER NOT NULL DEFAULT 0, ready INTEGER NOT NULL DEFAULT 0, over INTEGER NOT NULL DEFAULT 0,
        counted INTEGER NOT NULL DEFAULT 0, proven INTEGER NOT NULL DEFAULT 0,
        in_service_ms INTEGER, exact INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX boots_of_machine ON boots (machine, number);
    CREATE INDEX boots_under_way ON boots (machine) WHERE begun = 1 AND (counted = 0 OR proven = 0);
    CREATE TABLE transitions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, machine TEXT NOT NULL, type TEXT NOT NULL, body TEXT NOT NULL
    );
    CREATE INDEX transitions_of_machine ON transitions (machine, id);
    CREATE TABLE conditions (
        machine TEXT NOT NULL, type TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,
        PRIMARY KEY (machine, type)
    ) WITHOUT ROWID;
    -- what was decided, each once (`netboot.lifecycle.decided`)
    CREATE TABLE decisions (number INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL UNIQUE, body BLOB NOT NULL);
    CREATE TABLE proofs (
        number INTEGER PRIMARY KEY AUTOINCREMENT, boot TEXT NOT NULL UNIQUE, machine TEXT NOT NULL,
        proof TEXT NOT NULL, signature TEXT NOT NULL
    );
    CREATE INDEX proofs_of_machine ON proofs (machine, number);
    -- `last`: rises, so that the pair of class and image that was counted longest ago is known
    CREATE TABLE durations (
        target TEXT NOT NULL, hardware TEXT NOT NULL, image TEXT NOT NULL, body TEXT NOT NULL, last INTEGER NOT NULL,
        PRIMARY KEY (target, hardware, image)
    ) WITHOUT ROWID;
    """,
)
"""Each a step to the next version; what was released is never changed again."""
VERSION = len(SCHEMA)


def version_of(db: sqlite3.Connection) -> int:
    """The schema's number; 0: an empty file."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


class SqliteHistory:
    """Opens the file anew for each question, as `SqliteStates` does."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def transitions(self, machine: str | None, after: int | None, limit: int) -> list[Transition]:
        where = "machine = ?" if machine is not None else "? IS NULL"
        with self._open() as db:
            if after is None:
                query = f"SELECT id, body FROM transitions WHERE {where} ORDER BY id DESC LIMIT ?"  # noqa: S608
                rows = db.execute(query, (machine, limit)).fetchall()[::-1]
            else:
                query = f"SELECT id, body FROM transitions WHERE {where} AND id > ? ORDER BY id LIMIT ?"  # noqa: S608
                rows = db.execute(query, (machine, after, limit)).fetchall()
        return list(_readable(rows))

    def in_service(self, boots: Sequence[str]) -> dict[str, int]:
        query = "SELECT boot, in_service_ms FROM boots WHERE boot = ? AND in_service_ms IS NOT NULL"
        with self._open() as db:
            return dict(row for boot in boots for row in db.execute(query, (boot,)))

    def durations(self) -> list[Durations]:
        with self._open() as db:
            rows = db.execute("SELECT body FROM durations ORDER BY target, hardware, image").fetchall()
        return [each for each in (durations_in(body) for (body,) in rows) if each is not None]

    def decided(self, digest: str) -> Decided | None:
        with self._open() as db:
            row = db.execute("SELECT body FROM decisions WHERE digest = ?", (digest,)).fetchone()
            return Decided.model_validate_json(unpack(row[0])) if row else None  # type: ignore[arg-type]

    def proof(self, boot: str) -> SignedProof | None:
        with self._open() as db:
            row = db.execute("SELECT proof, signature FROM proofs WHERE boot = ?", (boot,)).fetchone()
            return SignedProof(proof=row[0], signature=row[1]) if row else None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        if not self._path.exists():
            raise StateUnavailableError(f"{self._path} is not there yet: the controllers make it when they start")
        try:
            with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0)) as db:
                lenient(db)
                if version_of(db) != VERSION:
                    raise StateUnavailableError(f"{self._path} is of another version: the controllers see to it")
                yield db
        except (sqlite3.Error, ValueError) as error:
            raise StateUnavailableError(f"{self._path} cannot be read: {error}") from None


def opened(path: Path) -> sqlite3.Connection:
    """For the one process that writes it: made where there is none, its schema brought up to date."""
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


def durations_in(body: str) -> Durations | None:
    """What was counted; None: it is damaged, which the log says."""
    try:
        return Durations.model_validate_json(body)
    except ValueError as error:
        log.warning("durations that were counted cannot be read and are left out: %s", why(error))
        return None


def _readable(rows: Sequence[tuple[int, str]]) -> Iterator[Transition]:
    for number, body in rows:
        try:
            yield Transition.model_validate_json(body).model_copy(update={"id": number})
        except ValueError as error:
            log.warning("transition %d cannot be read and is left out: %s", number, why(error))
