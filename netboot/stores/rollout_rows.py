"""Rows of `data/rollouts.db`, in the transaction that is open."""

import sqlite3
from collections.abc import Iterable
from typing import TypeVar

from pydantic import ValidationError

from netboot.lifecycle.errors import NoSuchRolloutError
from netboot.lifecycle.rollout import UNDER_WAY, Member, MemberState, Rollout
from netboot.lifecycle.rollout_counts import ByRack, Counts
from netboot.lifecycle.rollout_objects import RolloutSaid
from netboot.lifecycle.rollout_specs import NOTES
from netboot.lifecycle.rollout_store import Entry, Note
from netboot.stores.rollout_schema import STATE

K = TypeVar("K", Counts, ByRack)
KEPT = 200
"""Rollouts of which everything is kept."""
_OF_ALL = "SELECT body FROM members WHERE rollout = ? AND machine > ? ORDER BY machine LIMIT ?"
_OF_STATE = _OF_ALL.replace("members", "members INDEXED BY members_by_state").replace("?", f"? AND {STATE} = ?", 1)
"""It would take the primary key otherwise, and read all of them."""


def rollouts_of(db: sqlite3.Connection, query: str, *values: object) -> list[Rollout]:
    """Those that a query finds, as `number, body`."""
    return [Rollout.model_validate_json(body) for _, body in db.execute(query, values).fetchall()]


def history_of(db: sqlite3.Connection, number: int, limit: int) -> list[Entry]:
    """As `SqliteRollouts.history`, in the transaction that is open."""
    names = tuple(Entry.model_fields)
    query = f"SELECT {', '.join(names)} FROM history WHERE rollout = ? ORDER BY id DESC LIMIT ?"  # noqa: S608
    rows = db.execute(query, (number, limit)).fetchall()
    return [Entry.model_validate(dict(zip(names, row, strict=True))) for row in rows]


def one(db: sqlite3.Connection, number: int) -> Rollout:
    """Raises NoSuchRolloutError."""
    can_be = number < 2**63  # SQLite's integers
    found = rollouts_of(db, "SELECT number, body FROM rollouts WHERE number = ?", number) if can_be else []
    if not found:
        raise NoSuchRolloutError(f"there is no rollout {number}")
    return found[0]


def members_of(db: sqlite3.Connection, number: int) -> dict[str, Member]:
    """Of a rollout, in the transaction that is open."""
    rows = db.execute("SELECT machine, body FROM members WHERE rollout = ?", (number,)).fetchall()
    return {name: Member.model_validate_json(body) for name, body in rows}


def in_state(db: sqlite3.Connection, number: int, state: MemberState | None, after: str, most: int) -> list[Member]:
    """Of any state: None. `after`: a name."""
    query, values = _OF_ALL if state is None else _OF_STATE, (state.value,) if state is not None else ()
    return [Member.model_validate_json(body) for (body,) in db.execute(query, (number, *values, after, most))]


def known(kind: type[K], said: str | None) -> K | None:
    """None: not counted since a member was written; or by another rule."""
    try:
        return kind.model_validate_json(said) if said is not None else None
    except ValidationError:
        return None


def said(db: sqlite3.Connection, number: int) -> RolloutSaid:
    """One, as an object has it. Raises NoSuchRolloutError."""
    rollout, members = one(db, number), members_of(db, number)
    released = bool(db.execute("SELECT released FROM rollouts WHERE number = ?", (number,)).fetchone()[0])
    return RolloutSaid(rollout, members, tuple(map(note_of, reversed(history_of(db, number, NOTES)))), released)


def note_of(entry: Entry) -> Note:
    """What it says, without which rollout it is of."""
    return Note(entry.at_ms, entry.who, entry.act, entry.said)


def keep(db: sqlite3.Connection, number: int, counts: Counts, racks: ByRack) -> None:
    """After the last write of a member, for that takes them away."""
    query = "INSERT OR REPLACE INTO counts (rollout, body, racks) VALUES (?, ?, ?)"
    db.execute(query, (number, counts.model_dump_json(), racks.model_dump_json()))


def write(db: sqlite3.Connection, rollout: Rollout, members: Iterable[Member]) -> None:
    """A rollout that is there, and those of its machines that changed."""
    db.execute(
        "UPDATE rollouts SET under_way = ?, body = ? WHERE number = ?",
        (rollout.state in UNDER_WAY, rollout.model_dump_json(), rollout.number),
    )
    db.executemany(
        "INSERT OR REPLACE INTO members (rollout, machine, body) VALUES (?, ?, ?)",
        [(rollout.number, each.machine, each.model_dump_json()) for each in members],
    )


def note_down(db: sqlite3.Connection, number: int, note: Note) -> None:
    """A line for its history, in the transaction that is open."""
    query = "INSERT INTO history (at_ms, rollout, who, act, said) VALUES (?, ?, ?, ?, ?)"
    db.execute(query, (note.at_ms, number, note.who, note.act, note.said))


def forget(db: sqlite3.Connection) -> None:
    """What ended longest ago, and has no say any more."""
    newest = db.execute("SELECT max(number) FROM rollouts").fetchone()[0]
    kept = "SELECT max(number) FROM rollouts GROUP BY channel UNION SELECT number FROM channels"
    old = f"(SELECT number FROM rollouts WHERE number <= ? AND number NOT IN ({kept}))"  # noqa: S608
    db.execute(f"DELETE FROM members WHERE rollout IN {old}", (newest - KEPT,))  # noqa: S608 - our own text
    db.execute(f"DELETE FROM history WHERE rollout IN {old}", (newest - KEPT,))  # noqa: S608 - our own text
    db.execute(f"DELETE FROM rollouts WHERE number IN {old}", (newest - KEPT,))  # noqa: S608 - our own text
    db.execute("DELETE FROM counts WHERE rollout NOT IN (SELECT number FROM rollouts)")
