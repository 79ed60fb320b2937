"""Rollouts in `data/rollouts.db`: `netboot.lifecycle.rollout_store.RolloutStore`.

The supervisor makes the file when the service starts, and nobody else: one that is gone while it runs is not made anew,
for an empty one would say that nothing is assigned. Opened anew for each question, as that of enrolments is.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from images.values.faults import first_fault
from netboot.lifecycle.errors import RolloutRefusedError, StateUnavailableError
from netboot.lifecycle.rollout import Assigned, Member, MemberState, Rollout, assignments, images
from netboot.lifecycle.rollout_counts import ByRack, Counts, by_rack, counted
from netboot.lifecycle.rollout_objects import RolloutSaid
from netboot.lifecycle.rollout_orders import another, cancelled
from netboot.lifecycle.rollout_store import After, Change, Entry, Listed, Members, Note, Summed
from netboot.stores import shared_file
from netboot.stores.rollout_rows import (
    forget,
    history_of,
    in_state,
    keep,
    known,
    members_of,
    note_down,
    one,
    rollouts_of,
    said,
    write,
)
from netboot.stores.rollout_schema import MIGRATIONS, VERSION

_LISTED = (
    "SELECT rollouts.body, counts.body FROM rollouts LEFT JOIN counts ON counts.rollout = number "
    "WHERE ? IS NULL OR number < ? ORDER BY number DESC LIMIT ?"
)


def make(path: Path) -> sqlite3.Connection:
    """The file, made or brought up to date; whoever keeps it open keeps SQLite's files beside it.

    Raises:
        StateUnavailableError: it is newer than this program. sqlite3.Error, OSError.
    """
    return shared_file.connect(path, MIGRATIONS)


def end_all(path: Path, why: str, now_ms: int) -> None:
    """All that are under way in the file are over, and nothing is assigned by any, for good.

    Raises:
        StateUnavailableError, sqlite3.Error, OSError.
    """
    with closing(make(path)) as db:
        db.execute("BEGIN IMMEDIATE")
        for each in rollouts_of(db, "SELECT number, body FROM rollouts WHERE under_way"):
            write(db, cancelled(each, why, now_ms), ())
            note_down(db, each.number, Note(now_ms, "netboot", "cancel", why))
        db.execute("UPDATE rollouts SET released = 1 WHERE NOT released")
        db.execute("COMMIT")


class SqliteRollouts:
    """Safe for threads and processes: every change is one transaction that reads, decides and writes."""

    in_force = (
        "SELECT number, body FROM rollouts WHERE number IN "
        "(SELECT max(number) FROM rollouts GROUP BY channel) AND NOT released"
    )
    """Of each channel the newest: no older one has a say."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def listed(self, limit: int, before: int | None = None) -> list[Listed]:
        with self.opened("ro") as db:
            rows = db.execute(_LISTED, (before, before, limit)).fetchall()
        found = [(Rollout.model_validate_json(body), known(Counts, said)) for body, said in rows]
        return [Listed(each, counts or self._counted(each.number)[0]) for each, counts in found]

    def under_way(self) -> list[Rollout]:
        with self.opened("ro") as db:
            return rollouts_of(db, "SELECT number, body FROM rollouts WHERE under_way ORDER BY number")

    def refresh(self) -> None:
        pass

    def behind(self) -> str:
        return ""

    def hidden(self) -> list[str]:
        return []

    def rollout(self, number: int) -> Rollout:
        with self.opened("ro") as db:
            return one(db, number)

    def summed(self, number: int) -> Summed:
        with self.opened("ro") as db:
            rollout = one(db, number)
            said = db.execute("SELECT body, racks FROM counts WHERE rollout = ?", (number,)).fetchone()
        counts, racks = (known(Counts, said[0]), known(ByRack, said[1])) if said is not None else (None, None)
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
                found += in_state(db, number, turns[place], behind, limit - len(found))
        return found

    def history(self, number: int, limit: int) -> list[Entry]:
        with self.opened("ro") as db:
            return history_of(db, number, limit)

    def assigned(self) -> Mapping[str, Assigned]:
        found: dict[str, Assigned] = {}
        with self.opened("ro") as db:
            for rollout in rollouts_of(db, self.in_force):
                found |= assignments(rollout, members_of(db, rollout.number))
        return found

    def last(self, channel: str) -> RolloutSaid | None:
        """The newest of a channel, whole; None: it has had none."""
        with self.opened("ro") as db:
            newest = db.execute("SELECT max(number) FROM rollouts WHERE channel = ?", (channel,)).fetchone()[0]
            return said(db, newest) if newest is not None else None

    def images(self) -> set[str]:
        found = set[str]()
        with self.opened("ro") as db:
            for rollout in rollouts_of(db, self.in_force):
                found |= images(rollout, members_of(db, rollout.number))
        return found

    def start(self, rollout: Rollout, members: Members, note: Note) -> Rollout:
        with self.opened("rw") as db:
            db.execute("BEGIN IMMEDIATE")
            query = "SELECT number, body FROM rollouts WHERE under_way AND channel = ?"
            if there := rollouts_of(db, query, rollout.channel):
                raise RolloutRefusedError(another(there[0]))
            row = db.execute(
                "INSERT INTO rollouts (channel, under_way, body) VALUES (?, 1, ?)", (rollout.channel, "")
            ).lastrowid
            begun = rollout.model_copy(update={"number": row})
            write(db, begun, members.values())
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
                write(db, rollout, changed)
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
