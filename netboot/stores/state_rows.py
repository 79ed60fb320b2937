"""Rows of `data/state.db` one by one. What cannot be read is set aside in the table `set_aside`."""

import logging
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from images.values.faults import first_fault
from images.values.strict import Strict
from netboot.lifecycle import state
from netboot.lifecycle.events import ConsoleRecord, CrashRecord, HealthRecord
from netboot.lifecycle.sightings import Discovered, Told
from netboot.lifecycle.state import FeedEntry, SetAside, Waited
from netboot.lifecycle.trace import Trace
from netboot.stores.packing import unpack

log = logging.getLogger(__name__)

ORIGIN = "state.db"
INSPECTED_AT_ONCE = 500
S = TypeVar("S", bound=Strict)


@dataclass(frozen=True, slots=True)
class Table(Generic[S]):
    """A table with a column of JSON, and what that is."""

    name: str
    key: str
    column: str
    model: type[S]


BOOTS = Table("boots", "boot", "trace", Trace)
HEALTH = Table("health", "boot", "body", HealthRecord)
DISCOVERED = Table("discovered", "key", "body", Discovered)
HARDWARE = Table("hardware", "mac", "body", Told)
FEED = Table("feed", "id", "body", FeedEntry)
CRASHES = Table("crashes", "id", "body", CrashRecord)
CONSOLES = Table("consoles", "boot", "body", ConsoleRecord)
WAITS = Table("waits", "machine", "body", Waited)
TABLES: tuple[Table[Any], ...] = (BOOTS, HEALTH, DISCOVERED, HARDWARE, FEED, CRASHES, CONSOLES, WAITS)


def lenient(db: sqlite3.Connection) -> None:
    """Text that is not UTF-8 no longer fails the whole query: its bytes come as lone surrogates (PEP 383)."""
    db.text_factory = lambda text: text.decode("utf-8", "surrogateescape")


def raw(body: object) -> bytes:
    """What stands in a row that cannot be read, for people."""
    with suppress(ValueError):
        body = unpack(body)
    if isinstance(body, str):
        return body.encode("utf-8", "surrogateescape")
    return body if isinstance(body, bytes) else repr(body).encode()


def why(error: ValueError) -> str:
    """Why a row cannot be read, in words that name no value."""
    return str(first_fault(error)) if isinstance(error, ValidationError) else str(error)


def parse(table: Table[S], body: object) -> S:
    """The value in the column of JSON.

    Raises:
        ValueError: it cannot be read.
    """
    text = unpack(body)
    if not isinstance(text, str | bytes):
        raise ValueError(f"it is no text but {type(text).__name__}")  # noqa: TRY004 - a row is data, not a programmer's mistake
    return table.model.model_validate_json(text)


def parse_or_leave_out(table: Table[S], key: object, body: object) -> S | None:
    """For readers: None for a row that cannot be read; the projection sets it aside when it comes to it."""
    try:
        return parse(table, body)
    except ValueError as error:
        log.warning("%s: %s %s cannot be read and is left out: %s", ORIGIN, table.name, key, why(error))
        return None


def parse_or_set_aside(db: sqlite3.Connection, table: Table[S], key: object, body: object) -> S | None:
    """For the writer: None for a row that cannot be read, and it is set aside."""
    try:
        return parse(table, body)
    except ValueError as error:
        set_aside(db, [SetAside(ORIGIN, f"{table.name} {key}", why(error), raw(body))])
        db.execute(f"DELETE FROM {table.name} WHERE {table.key} = ?", (key,))  # noqa: S608 - names of our own
        return None


def stored(db: sqlite3.Connection, table: Table[S], key: str) -> S | None:
    """What a row holds; None: it is not there, or could not be read and has been set aside."""
    query = f"SELECT {table.column} FROM {table.name} WHERE {table.key} = ?"  # noqa: S608 - names of our own
    row = db.execute(query, (key,)).fetchone()
    return parse_or_set_aside(db, table, key, row[0]) if row else None


def set_aside(db: sqlite3.Connection, rows: Iterable[SetAside]) -> None:
    """Keep them for people to look at."""
    db.executemany(
        "INSERT INTO set_aside (origin, row, reason, body) VALUES (?, ?, ?, ?)",
        [(aside.origin, aside.row, aside.reason, aside.body[: state.SET_ASIDE_BYTES]) for aside in rows],
    )


def last_set_aside(db: sqlite3.Connection) -> int:
    """The id of the row that was set aside last; 0: none was."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'set_aside'").fetchone()
    return row[0] if row else 0


def count_set_aside(db: sqlite3.Connection, after: int) -> dict[str, int]:
    """How many were set aside after that one, by origin; says so, and forgets the oldest beyond the bound."""
    query = "SELECT origin, count(*), row, reason, min(id) FROM set_aside WHERE id > ? GROUP BY origin"
    counts = {}
    for origin, count, row, reason, _ in db.execute(query, (after,)):
        log.warning("%d rows of %s are set aside; the first: %s: %s", count, origin, row, reason)
        counts[origin] = count
    if counts:
        db.execute("DELETE FROM set_aside WHERE id <= ?", (last_set_aside(db) - state.SET_ASIDE_KEPT,))
    return counts


def inspect(db: sqlite3.Connection, place: int, after: object) -> tuple[int, object]:
    """Try to read some rows of `TABLES[place]` after that key; where to go on."""
    table = TABLES[place]
    beyond = "" if after is None else f"WHERE {table.key} > ?"
    query = f"SELECT {table.key}, {table.column} FROM {table.name} {beyond} ORDER BY {table.key} LIMIT ?"  # noqa: S608
    values = (INSPECTED_AT_ONCE,) if after is None else (after, INSPECTED_AT_ONCE)
    rows = db.execute(query, values).fetchall()
    for key, body in rows:
        parse_or_set_aside(db, table, key, body)
    return (place, rows[-1][0]) if rows else (place + 1, None)
