"""Who did what, in `data/audit.db`: what the management API was asked to do, and what came of it.

The supervisor makes the file when the service starts; the management server writes it. Bounded, the newest are kept;
what was refused has a bound of its own, so that nobody who may do nothing pushes out what was done. Beside it is what
acts with a key came to (`netboot.stores.idempotency`).
"""

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from images.values.strict import Strict
from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores import shared_file

MIGRATIONS = (
    (
        """CREATE TABLE audit (
            id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, refused INTEGER NOT NULL,
            machine TEXT NOT NULL, body TEXT NOT NULL
        )""",
        "CREATE INDEX audit_of_machine ON audit (machine, id)",
        "CREATE INDEX audit_refused ON audit (refused, id)",
    ),
    (
        """CREATE TABLE idempotency (
            id BLOB PRIMARY KEY, at_ms INTEGER NOT NULL, request BLOB NOT NULL, owner TEXT NOT NULL, status INTEGER,
            answer BLOB, bytes INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID""",
        "CREATE INDEX idempotency_at ON idempotency (at_ms, bytes)",
    ),
)
KEPT = {False: 100_000, True: 10_000}
"""Acts, and what was refused; some 60 MB."""
_FORGET = (
    "DELETE FROM audit WHERE refused = :refused AND id <= "
    "(SELECT id FROM audit WHERE refused = :refused ORDER BY id DESC LIMIT 1 OFFSET :kept)"
)


class Record(Strict):
    """One act. `token`: eight digits of its hash; `request_id`: of the request; `machine`: "" where it is of none;
    `result`: `done`, `unchanged` (it was so already), or why not, as the API's `code`; `facts`: what else belongs
    to it."""

    at_ms: int
    who: str
    role: str
    token: str
    peer: str
    request_id: str
    act: str
    machine: str = ""
    reason: str = ""
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    result: str = "done"
    facts: dict[str, Any] = Field(default_factory=dict)


TOLD = 100
"""Characters of what was before or after, in a list."""


def told(value: Mapping[str, Any] | None) -> str:
    """What was before or after, in words: small values whole, of larger ones the beginning."""
    return _short(in_words(value))


def in_words(value: Mapping[str, Any] | None) -> str:
    """The same, all of it."""
    if value is None:
        return ""
    return ", ".join(f"{name} {_plain(each)}" for name, each in value.items() if each not in (None, "", []))


_CONCERNED = {
    "channel": "channel",
    "rollout": "rollout",
    "number": "rollout",
    "issued": "token",
    "revoked": "token",
    "token_id": "token",
    "digest": "digest",
    "image": "image",
    "key": "key",
    "node": "node",
    "mac": "mac",
    "to": "to",
}
"""Key of `facts` → what a thing is called whose name, number or digest that is. Other facts name nothing."""


def concerned(facts: Mapping[str, Any]) -> str:
    """What an act was on besides its machine, in at most `TOLD` characters: of `facts` what names things, so that two
    acts on two things are told apart. Of a channel that was moved, before and after have the images."""
    kind, name, machines = facts.get("kind"), facts.get("name"), facts.get("machines")
    found = [f"{kind}/{name}" if kind and name else str(name or "")]
    found += [
        f"{word} {_plain(facts[key])}"
        for key, word in _CONCERNED.items()
        if facts.get(key) not in (None, "", []) and not (key == "image" and "was" in facts)
    ]
    if machines:
        found.append(f"machines {', '.join(map(str, machines)) if isinstance(machines, list) else machines}")
    return _short(", ".join(filter(None, found)))


_DIGEST = re.compile(r"[0-9a-f]{64}")


def _short(text: str) -> str:
    return text if len(text) <= TOLD else f"{text[: TOLD - 1]}…"


def _plain(value: object) -> str:
    return value[:12] if isinstance(value, str) and _DIGEST.fullmatch(value) else json.dumps(value).strip('"')


def make(path: Path) -> sqlite3.Connection:
    """The file, made or brought up to date; whoever keeps it open keeps SQLite's files beside it.

    Raises:
        StateUnavailableError: it is newer than this program. sqlite3.Error, OSError.
    """
    return shared_file.connect(path, MIGRATIONS)


def _body(record: Record) -> str:
    return json.dumps(record.model_dump(mode="json", exclude={"at_ms", "machine"}), sort_keys=True, default=str)


def _read(number: int, at_ms: int, machine: str, body: str) -> Record:
    try:
        return Record.model_validate({**json.loads(body), "at_ms": at_ms, "machine": machine})
    except (ValueError, TypeError):
        raise ValueError(f"its row {number} is damaged") from None


class SqliteAudit:
    """Safe for threads and processes. Opened anew each time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, *records: Record, refused: bool = False) -> None:
        """They are on the disk when this returns, or none is. Raises StateUnavailableError."""
        rows = [(each.at_ms, refused, each.machine, _body(each)) for each in records]
        with opened(self._path, "rw") as db:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT INTO audit (at_ms, refused, machine, body) VALUES (?, ?, ?, ?)", rows)
            db.execute(_FORGET, {"refused": refused, "kept": KEPT[refused]})
            db.execute("COMMIT")

    def after(self, number: int, limit: int) -> list[tuple[int, Record]]:
        """Those after the one of that number, the oldest first. Raises StateUnavailableError."""
        query = "SELECT id, at_ms, machine, body FROM audit WHERE id > ? ORDER BY id LIMIT ?"
        with opened(self._path, "ro") as db:
            return [(found[0], _read(*found)) for found in db.execute(query, (number, limit)).fetchall()]

    def ends(self) -> tuple[int, int]:
        """The numbers of the oldest and the newest; 0: there is none. Raises StateUnavailableError."""
        with opened(self._path, "ro") as db:
            oldest, newest = db.execute("SELECT min(id), max(id) FROM audit").fetchone()
        return oldest or 0, newest or 0

    def records(self, machine: str | None, before: int | None, limit: int) -> list[tuple[int, Record]]:
        """The newest first, with their numbers; `before`: older than the one of this number. Raises
        StateUnavailableError."""
        query = (
            "SELECT id, at_ms, machine, body FROM audit WHERE (:machine IS NULL OR machine = :machine) "
            "AND (:before IS NULL OR id < :before) ORDER BY id DESC LIMIT :limit"
        )
        with opened(self._path, "ro") as db:
            rows = db.execute(query, {"machine": machine, "before": before, "limit": limit}).fetchall()
            return [(number, _read(number, at, name, body)) for number, at, name, body in rows]


@contextmanager
def opened(path: Path, mode: Literal["ro", "rw"]) -> Iterator[sqlite3.Connection]:
    """The file, for as long as the block takes. Raises StateUnavailableError, also for what goes wrong in the block."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=shared_file.BUSY_SECONDS, isolation_level=None)) as db:
            db.execute("PRAGMA synchronous=FULL")
            shared_file.known(path, db, len(MIGRATIONS))
            yield db
    except (sqlite3.Error, ValueError) as error:
        raise StateUnavailableError(f"{path} cannot be used: {error}") from None
