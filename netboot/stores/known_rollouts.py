"""What objects of rollouts were known to say, in `data/rollouts.db`, beside the rollouts themselves: tables of
`netboot.stores.shared_rollouts`."""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from netboot.lifecycle.errors import RolloutRefusedError
from netboot.lifecycle.rollout import Rollout
from netboot.lifecycle.rollout_counts import by_rack, counted
from netboot.lifecycle.rollout_objects import NOTES, RolloutObject, RolloutSaid
from netboot.lifecycle.rollout_orders import another, cancelled
from netboot.lifecycle.rollout_store import Entry, Note
from netboot.stores import rollout_rows
from netboot.stores.known_orders import LATE_MS, older, settled

GONE = "its object was deleted"
OTHER = "rollout/{0}: there is another {0} here, of before replicas shared any: `netboot channel set --force` ends that"
OBJECTS = 20
"""Of ended rollouts, beside the last of each channel: older ones are on the disks of replicas that were there."""
_AS_OF = "INSERT OR REPLACE INTO followed (id, as_of_ms) VALUES (1, ?)"


class Known(NamedTuple):
    """Which word of an object is here. `written_ms`: when it was written or asked here, by this host's clock; 0: it was
    in what was read of all. `alone_ms`: when it was changed here alone, for the API server was away; 0: it was not."""

    number: int
    uid: str
    generation: int
    version: str
    written_ms: int
    alone_ms: int = 0


_COLUMNS = ", ".join(Known._fields)
_KNOW = f"INSERT OR REPLACE INTO objects ({_COLUMNS}) VALUES ({', '.join('?' * len(Known._fields))})"  # noqa: S608
_ROLLOUT = """INSERT INTO rollouts (number, channel, under_way, released, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (number) DO UPDATE SET
channel = excluded.channel, under_way = excluded.under_way, released = excluded.released, body = excluded.body"""


def known_of(db: sqlite3.Connection) -> dict[int, Known]:
    """By their numbers, in the transaction that is open."""
    return {row[0]: Known(*row) for row in db.execute(f"SELECT {_COLUMNS} FROM objects")}  # noqa: S608 - our own names


def said_of(db: sqlite3.Connection, number: int) -> RolloutSaid:
    """What is known of a rollout, as an object says it, in the transaction that is open. Raises NoSuchRolloutError."""
    rollout, members = rollout_rows.one(db, number), rollout_rows.members_of(db, number)
    released = bool(db.execute("SELECT released FROM rollouts WHERE number = ?", (number,)).fetchone()[0])
    entries = reversed(rollout_rows.history_of(db, number, NOTES))
    return RolloutSaid(rollout, members, tuple(_note(each) for each in entries), released)


def take(db: sqlite3.Connection, found: RolloutObject, known: dict[int, Known], as_of_ms: int, *, listed: bool) -> None:
    """Write down what an object says as of then, in the transaction that is open, unless something newer is known of
    it: in what was read of all objects, or just read or written here."""
    said, was = found.said, known.get(found.number)
    if said is None or older(found, was, as_of_ms, listed=listed):
        return
    now = Known(found.number, found.uid, found.generation, found.version, 0 if listed else as_of_ms)
    if was is not None and (was.uid, was.generation) == (found.uid, found.generation):
        now = now._replace(written_ms=min(was.written_ms, now.written_ms), alone_ms=was.alone_ms)
        if was.alone_ms and as_of_ms - LATE_MS >= was.alone_ms:
            now = now._replace(alone_ms=0)
            _write(db, said)
    else:
        _write(db, said)
    if now != was:
        db.execute(_KNOW, now)
        known[found.number] = now


def without(
    db: sqlite3.Connection, there: Collection[int], known: dict[int, Known], as_of_ms: int, now_ms: int
) -> list[Rollout]:
    """Rollouts whose objects are not `there` assign nothing any more, where that is surely of after what was written
    here; those of them that were under way."""
    gone = [each for each in known.values() if each.number not in there and settled(each, as_of_ms)]
    ended = []
    for each in gone:
        rollout = rollout_rows.one(db, each.number)
        if rollout.under_way:
            ended.append(rollout)
            db.execute(
                "UPDATE rollouts SET under_way = 0, body = ? WHERE number = ?",
                (cancelled(rollout, GONE, now_ms).model_dump_json(), each.number),
            )
        db.execute("UPDATE rollouts SET released = 1 WHERE number = ?", (each.number,))
        db.execute("DELETE FROM objects WHERE number = ?", (each.number,))
        del known[each.number]
    return ended


def alone(db: sqlite3.Connection, number: int, now_ms: int) -> None:
    """It was changed here, and stays so until the API server says again what it is."""
    db.execute("UPDATE objects SET alone_ms = ? WHERE number = ?", (now_ms, number))


def as_of(db: sqlite3.Connection, as_of_ms: int) -> None:
    """All was read at that moment at the earliest."""
    db.execute(_AS_OF, (as_of_ms,))


def _write(db: sqlite3.Connection, said: RolloutSaid) -> None:
    rollout, number = said.rollout, said.rollout.number
    body = rollout.model_dump_json()
    db.execute(_ROLLOUT, (number, rollout.channel, rollout.under_way, said.released, body))
    there = dict(db.execute("SELECT machine, body FROM members WHERE rollout = ?", (number,)).fetchall())
    now = {name: each.model_dump_json() for name, each in said.members.items()}
    changed = [(number, name, body) for name, body in now.items() if there.get(name) != body]
    db.executemany("INSERT OR REPLACE INTO members (rollout, machine, body) VALUES (?, ?, ?)", changed)
    left = [(number, name) for name in there if name not in now]
    db.executemany("DELETE FROM members WHERE rollout = ? AND machine = ?", left)
    rollout_rows.forget(db)
    if changed or left:
        rollout_rows.keep(db, number, counted(said.members), by_rack(said.members))
    noted = {_note(each) for each in rollout_rows.history_of(db, number, 2 * NOTES)}
    for note in said.notes:
        if note not in noted:
            rollout_rows.note_down(db, number, note)


def _note(entry: Entry) -> Note:
    return Note(entry.at_ms, entry.who, entry.act, entry.said)


def needless(objects: Sequence[RolloutObject]) -> list[RolloutObject]:
    """Those of which nothing is to come."""
    newest = {each.said.rollout.channel: each.number for each in objects if each.said is not None}
    over = [
        each
        for each in objects
        if each.said is not None and not each.said.rollout.under_way and each.number not in newest.values()
    ]
    return [*extras(objects), *over[: max(len(over) - OBJECTS, 0)]]


def extras(objects: Sequence[RolloutObject]) -> list[RolloutObject]:
    """Those that began in a channel at the same moment as another one, by another replica: the first alone counts, and
    whoever began a later one is told, and deletes it."""
    under_way: dict[str, list[RolloutObject]] = {}
    for each in sorted(objects, key=lambda each: each.number):
        if each.said is not None and each.said.rollout.under_way:
            under_way.setdefault(each.said.rollout.channel, []).append(each)
    return [each for found in under_way.values() for each in found[1:]]


def waits(each: RolloutObject, waiting: Mapping[str, int]) -> bool:
    """Whether it is one of these, or of its channel and later."""
    return each.said is not None and each.number >= waiting.get(each.said.rollout.channel, each.number + 1)


def ended_first(objects: Sequence[RolloutObject]) -> list[RolloutObject]:
    """One of a channel is under way at a time."""
    return sorted(objects, key=lambda each: (each.said is not None and each.said.rollout.under_way, each.number))


def none_under_way(objects: Sequence[RolloutObject], channel: str, before: int | None) -> None:
    """Raises RolloutRefusedError: one of the channel is, of a number before that one (None: of any)."""
    for each in objects:
        if each.said is None or each.said.rollout.channel != channel or not each.said.rollout.under_way:
            continue
        if before is None or each.number < before:
            raise RolloutRefusedError(another(each.said.rollout))
