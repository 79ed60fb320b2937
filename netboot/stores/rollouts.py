"""Rollouts in `data/rollouts.db`: `netboot.lifecycle.rollout_store.RolloutStore`.

The supervisor makes the file when the service starts, and nobody else: one that is gone while it runs is not made anew,
for an empty one would say that nothing is assigned. Opened anew for each question, as that of enrolments is.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from images.values.faults import first_fault
from netboot.lifecycle.errors import NoSuchRolloutError, RolloutRefusedError, StateUnavailableError
from netboot.lifecycle.rollout import UNDER_WAY, Assigned, Member, MemberState, Rollout, assignments, images
from netboot.lifecycle.rollout_counts import ByRack, Counts, by_rack, counted
from netboot.lifecycle.rollout_orders import another
from netboot.lifecycle.rollout_store import After, Change, Entry, Listed, Members, Note, Summed
from netboot.stores import shared_file
from netboot.stores.rollout_schema import MIGRATIONS, STATE, VERSION

K = TypeVar("K", Counts, ByRack)
KEPT = 200
"""Rollouts of which everything is kept."""
_IN_FORCE = (
    "SELECT number, body FROM rollouts WHERE number IN "
    "(SELECT max(number) FROM rollouts GROUP BY channel) AND NOT released"
)
"""Of each channel the newest: no older one has a say."""
_LISTED = (
    "SELECT rollouts.body, counts.body FROM rollouts LEFT JOIN counts ON counts.rollout = number "
    "WHERE ? IS NULL OR number < ? ORDER BY number DESC LIMIT ?"
)
_OF_ALL = "SELECT body FROM members WHERE rollout = ? AND machine > ? ORDER BY machine LIMIT ?"
_OF_STATE = _OF_ALL.replace("members", "members INDEXED BY members_by_state").replace("?", f"? AND {STATE} = ?", 1)
"""It would take the primary key otherwise, and read all of them."""


def make(path: Path) -> sqlite3.Connection:
    """The file, made or brought up to date; whoever keeps it open keeps SQLite's files beside it.

    Raises:
        StateUnavailableError: it is newer than this program. sqlite3.Error, OSError.
    """
    return shared_file.connect(path, MIGRATIONS)


class SqliteRollouts:
    """Safe for threads and processes: every change is one transaction that reads, decides and writes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def listed(self, limit: int, before: int | None = None) -> list[Listed]:
        with self.opened("ro") as db:
            rows = db.execute(_LISTED, (before, before, limit)).fetchall()
        found = [(Rollout.model_validate_json(body), _known(Counts, said)) for body, said in rows]
        return [Listed(each, counts or self._counted(each.number)[0]) for each, counts in found]

    def under_way(self) -> list[Rollout]:
        with self.opened("ro") as db:
            return _rollouts(db, "SELECT number, body FROM rollouts WHERE under_way ORDER BY number")

    def rollout(self, number: int) -> Rollout:
        with self.opened("ro") as db:
            return one(db, number)

    def summed(self, number: int) -> Summed:
        with self.opened("ro") as db:
            rollout = one(db, number)
            said = db.execute("SELECT body, racks FROM counts WHERE rollout = ?", (number,)).fetchone()
        counts, racks = (_known(Counts, said[0]), _known(ByRack, said[1])) if said is not None else (None, None)
        if counts is None or racks is None:
            counts, racks = self._counted(number)
        return Summed(rollout, counts, racks)

    def members(self, number: int) -> Members:
        with self.opened("ro") as db:
            return members_of(db, number)

    def part(self, number: int, states: Sequence[MemberState], after: After | None, limit: int) -> list[Member]:
        turns: Sequence[MemberState | None] = states or (None,)
        first = turns.index(after.state) if after is not None else 0
        found: list[Member] = []
        with self.opened("ro") as db:
            for place in range(first, len(turns)):
                behind = after.machine if after is not None and place == first else ""
                found += _in_state(db, number, turns[place], behind, limit - len(found))
        return found

    def history(self, number: int, limit: int) -> list[Entry]:
        with self.opened("ro") as db:
            return history_of(db, number, limit)

    def assigned(self) -> Mapping[str, Assigned]:
        found: dict[str, Assigned] = {}
        with self.opened("ro") as db:
            for rollout in _rollouts(db, _IN_FORCE):
                found |= assignments(rollout, members_of(db, rollout.number))
        return found

    def images(self) -> set[str]:
        found = set[str]()
        with self.opened("ro") as db:
            for rollout in _rollouts(db, _IN_FORCE):
                found |= images(rollout, members_of(db, rollout.number))
        return found

    def start(self, rollout: Rollout, members: Members, note: Note) -> Rollout:
        with self.opened("rw") as db:
            db.execute("BEGIN IMMEDIATE")
            query = "SELECT number, body FROM rollouts WHERE under_way AND channel = ?"
            if there := _rollouts(db, query, rollout.channel):
                raise RolloutRefusedError(another(there[0]))
            row = db.execute(
                "INSERT INTO rollouts (channel, under_way, body) VALUES (?, 1, ?)", (rollout.channel, "")
            ).lastrowid
            begun = rollout.model_copy(update={"number": row})
            _write(db, begun, members.values())
            keep(db, begun.number, counted(members), by_rack(members))
            note_down(db, begun.number, note)
            forget(db)
            db.execute("COMMIT")
        return begun

    def change(self, number: int, change: Change, note: Callable[[Rollout, Rollout], Note | None]) -> Rollout:
        with self.opened("rw") as db:
            db.execute("BEGIN IMMEDIATE")
            was, before = one(db, number), members_of(db, number)
            rollout, members = change(was, before)
            changed = [each for name, each in members.items() if each is not before[name]]
            said = note(was, rollout)
            if rollout != was or changed:
                _write(db, rollout, changed)
            if changed:
                keep(db, number, counted(before | members), by_rack(before | members))
            if said is not None:
                note_down(db, number, said)
            db.execute("COMMIT")  # an error before it closes the connection, which rolls back
        return rollout

    def release(self, channel: str) -> None:
        with self.opened("rw") as db:
            db.execute("UPDATE rollouts SET released = 1 WHERE channel = ? AND NOT under_way", (channel,))

    def _counted(self, number: int) -> tuple[Counts, ByRack]:
        """Of one whose members were written by others than this class, or by a netboot that kept no counts: kept from
        now on, unless that cannot be written now, or a member was written since these were read, which SQLite refuses
        with SQLITE_BUSY_SNAPSHOT (https://sqlite.org/rescode.html#busy_snapshot)."""
        with self.opened("rw") as db:
            db.execute("BEGIN")
            members = members_of(db, number)
            counts, racks = counted(members), by_rack(members)
            with suppress(sqlite3.OperationalError):
                keep(db, number, counts, racks)
                db.execute("COMMIT")
        return counts, racks

    @contextmanager
    def opened(self, mode: str) -> Iterator[sqlite3.Connection]:
        """The file, for reading ("ro") or for writing, too ("rw"). Raises StateUnavailableError."""
        uri = f"{self._path.absolute().as_uri()}?mode={mode}"
        try:
            with closing(sqlite3.connect(uri, uri=True, timeout=shared_file.BUSY_SECONDS, isolation_level=None)) as db:
                if mode == "rw":
                    db.execute("PRAGMA synchronous=FULL")
                shared_file.known(self._path, db, VERSION)
                yield db
        except ValidationError as error:
            fault = first_fault(error)
            raise StateUnavailableError(
                f"{self._path} holds what cannot be read ({fault.key}: {fault.message}): restore a backup"
            ) from None
        except (sqlite3.Error, OSError) as error:
            why = "it is not there" if not self._path.exists() else error
            raise StateUnavailableError(f"{self._path} cannot be used: {why}; rollouts stand still") from None


def _rollouts(db: sqlite3.Connection, query: str, *values: object) -> list[Rollout]:
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
    found = _rollouts(db, "SELECT number, body FROM rollouts WHERE number = ?", number) if can_be else []
    if not found:
        raise NoSuchRolloutError(f"there is no rollout {number}")
    return found[0]


def members_of(db: sqlite3.Connection, number: int) -> Members:
    """Of a rollout, in the transaction that is open."""
    rows = db.execute("SELECT machine, body FROM members WHERE rollout = ?", (number,)).fetchall()
    return {name: Member.model_validate_json(body) for name, body in rows}


def _in_state(db: sqlite3.Connection, number: int, state: MemberState | None, after: str, most: int) -> list[Member]:
    """Of any state: None. `after`: a name."""
    query, values = _OF_ALL if state is None else _OF_STATE, (state.value,) if state is not None else ()
    return [Member.model_validate_json(body) for (body,) in db.execute(query, (number, *values, after, most))]


def _known(kind: type[K], said: str | None) -> K | None:
    """None: not counted since a member was written; or by another rule."""
    try:
        return kind.model_validate_json(said) if said is not None else None
    except ValidationError:
        return None


def keep(db: sqlite3.Connection, number: int, counts: Counts, racks: ByRack) -> None:
    """After the last write of a member, for that takes them away."""
    query = "INSERT OR REPLACE INTO counts (rollout, body, racks) VALUES (?, ?, ?)"
    db.execute(query, (number, counts.model_dump_json(), racks.model_dump_json()))


def _write(db: sqlite3.Connection, rollout: Rollout, members: Iterable[Member]) -> None:
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
    newest_of_each = "SELECT max(number) FROM rollouts GROUP BY channel"
    old = f"(SELECT number FROM rollouts WHERE number <= ? AND number NOT IN ({newest_of_each}))"  # noqa: S608
    db.execute(f"DELETE FROM members WHERE rollout IN {old}", (newest - KEPT,))  # noqa: S608 - our own text
    db.execute(f"DELETE FROM history WHERE rollout IN {old}", (newest - KEPT,))  # noqa: S608 - our own text
    db.execute(f"DELETE FROM rollouts WHERE number IN {old}", (newest - KEPT,))  # noqa: S608 - our own text
    db.execute("DELETE FROM counts WHERE rollout NOT IN (SELECT number FROM rollouts)")
