"""What `data/state.db` holds of a machine by a name that it had before becomes its own; within a transaction of
`netboot.stores.state_writer`, whose part this is. Entries of the feed stay: who watches reads them as they come."""

import sqlite3
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from netboot.stores import state_machines
from netboot.stores.packing import pack
from netboot.stores.state_rows import BOOTS, CONSOLES, CRASHES, HEALTH, WAITS, Table, parse_or_set_aside, stored

_CLAIMS = (
    "INSERT INTO claims (machine, served, last_ms) SELECT :name, served, last_ms FROM claims WHERE machine = :former "
    "ON CONFLICT (machine) DO UPDATE SET served = served + excluded.served, last_ms = max(last_ms, excluded.last_ms)"
)


def rename(db: sqlite3.Connection, present: Mapping[str, str]) -> None:
    """`present`: former name → the name of now. What was done already is found done."""
    for former, name in present.items():
        _texts(db, former, name)
        _boots(db, former, name)
        _reports(db, former, name)
        db.execute(_CLAIMS, {"former": former, "name": name})
        _waits(db, former, name)
        for table in ("claims", "waits", "machines", "removed"):
            db.execute(f"DELETE FROM {table} WHERE machine = ?", (former,))  # noqa: S608 - names of our own
    state_machines.refresh(db, present.values())


def _boots(db: sqlite3.Connection, former: str, name: str) -> None:
    for boot, body in db.execute("SELECT boot, trace FROM boots WHERE machine = ?", (former,)).fetchall():
        trace = parse_or_set_aside(db, BOOTS, boot, body)
        if trace is not None:
            text = trace.model_copy(update={"machine": name}).model_dump_json(exclude_defaults=True)
            db.execute("UPDATE boots SET machine = ?, trace = ? WHERE boot = ?", (name, pack(text), boot))


def _texts(db: sqlite3.Connection, former: str, name: str) -> None:
    """Of its boots, which have its former name still."""
    tables: tuple[Table[Any], ...] = (CRASHES, CONSOLES)
    for table in tables:
        of_boots = "boot IN (SELECT boot FROM boots WHERE machine = ?)"
        query = f"SELECT {table.key}, body FROM {table.name} WHERE {of_boots}"  # noqa: S608 - names of our own
        for key, body in db.execute(query, (former,)).fetchall():
            record = parse_or_set_aside(db, table, key, body)
            if record is not None:
                text = record.model_copy(update={"machine": name}).model_dump_json()
                statement = f"UPDATE {table.name} SET body = ? WHERE {table.key} = ?"  # noqa: S608
                db.execute(statement, (pack(text), key))


def _reports(db: sqlite3.Connection, former: str, name: str) -> None:
    for boot, body in db.execute("SELECT boot, body FROM health WHERE machine = ?", (former,)).fetchall():
        record = parse_or_set_aside(db, HEALTH, boot, body)
        if record is not None:
            text = record.model_copy(update={"machine": name}).model_dump_json(by_alias=True)
            db.execute("UPDATE health SET machine = ?, body = ? WHERE boot = ?", (name, pack(text), boot))


def _waits(db: sqlite3.Connection, former: str, name: str) -> None:
    """The later one of both."""
    known = [waited for each in (name, former) if (waited := stored(db, WAITS, each)) is not None]
    if known:
        latest = max(known, key=attrgetter("last_ms"))
        db.execute("INSERT OR REPLACE INTO waits (machine, body) VALUES (?, ?)", (name, latest.model_dump_json()))
