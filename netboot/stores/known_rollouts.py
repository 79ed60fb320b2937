"""What objects of rollouts were known to say, in `data/shared-rollouts.db`, beside the rollouts themselves, and where
channels point here: for `netboot.stores.shared_rollouts`."""

import logging
import sqlite3
from collections.abc import Collection, Mapping
from typing import NamedTuple

from images.errors import CorruptError, ImageError, NotFoundError
from netboot.clock import moment_ms
from netboot.lifecycle.packed_members import UnreadableError
from netboot.lifecycle.rollout import UNDER_WAY, Rollout
from netboot.lifecycle.rollout_counts import by_rack, counted
from netboot.lifecycle.rollout_objects import RolloutObject, RolloutSaid, Said, by_rollout, said_of
from netboot.lifecycle.rollout_orders import cancelled
from netboot.lifecycle.rollout_specs import NOTES, RolloutSpec
from netboot.lifecycle.rollout_store import Note
from netboot.stores import rollout_rows
from netboot.stores.image_repository import StoreImageRepository
from netboot.stores.known_orders import older, settled

log = logging.getLogger(__name__)

GONE = "its object was deleted"
MISSED = "it ended while this replica heard of nothing"
ALONE = (
    "channel {0} was set at this replica alone, and is as it was elsewhere: `netboot channel set {0}`, with --force "
    "where a rollout of it is under way"
)
OF_TWO = "rollout/{0}: spec.rollout.number: {1} is of rollout/{2}, too, and stays so here: delete the one not meant"
STAYS = "channel {} stays as it is: {}"
_AS_OF = "INSERT OR REPLACE INTO followed (id, as_of_ms) VALUES (1, ?)"


class Known(NamedTuple):
    """Which word of an object is here, by its `version`; "": a part of one. `written_ms`: when it was written or asked
    here, as this host tells time; 0: it was in what was read of all. `number`: of its rollout; 0: it has none.
    `alone_ms`: the channel was set here, while others could not be told: when; 0: it was not."""

    name: str
    uid: str
    generation: int
    version: str
    written_ms: int
    image: str
    image_name: str
    who: str
    since_ms: int
    number: int
    alone_ms: int = 0


_COLUMNS = ", ".join(Known._fields)
_SELECT = f"SELECT {_COLUMNS} FROM channels"  # noqa: S608 - our own names
_KNOW = f"INSERT OR REPLACE INTO channels ({_COLUMNS}) VALUES ({', '.join('?' * len(Known._fields))})"  # noqa: S608
_ROLLOUT = """INSERT INTO rollouts (number, channel, under_way, released, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (number) DO UPDATE SET
channel = excluded.channel, under_way = excluded.under_way, released = excluded.released, body = excluded.body"""


class KnownChannels:
    """In the transaction that is open."""

    def __init__(
        self, db: sqlite3.Connection, repository: StoreImageRepository, present: Mapping[str, str] | None = None
    ) -> None:
        """`present`: former name → the name of now, of machines."""
        self._db, self._repository, self._present = db, repository, present or {}
        row = db.execute("SELECT as_of_ms FROM followed").fetchone()
        self.as_of_ms = int(row[0]) if row is not None else 0
        """Of when what is known of all is; 0: nothing was read of them."""
        self.all = {row[0]: Known(*row) for row in db.execute(_SELECT)}
        """By the names of channels."""

    def said(self, channel: str) -> Said | None:
        """What an object is known to say; None: it is not known, or another thing is so here."""
        known = self.all.get(channel)
        if known is None or known.alone_ms:
            return None
        said = Said(known.image, known.image_name, known.who, known.since_ms)
        return said._replace(rollout=rollout_rows.said(self._db, known.number)) if known.number else said

    def take(
        self,
        found: RolloutObject,
        as_of_ms: int,
        *,
        listed: bool = False,
        for_all: bool = False,
        knew: str | None = None,
    ) -> str:
        """What an object says as of then: in what was read of all (`listed`), just read, or just written here, where
        `knew` is the version that was known before ("": none); `for_all`: to set it for all, also where it was set here
        alone. Returns why it is not so here; "": it is, or is older than what is known."""
        spec, was = found.spec, self.all.get(found.channel)
        newest = knew is not None and knew == (was.version if was is not None else "")  # nothing came in between
        if not newest and self._older(found, as_of_ms, listed=listed):
            return ""
        if spec is None:
            self._hide(found.channel, found.fault)
            return found.fault
        last, written_ms = spec.rollout, 0 if listed else as_of_ms
        number, since_ms = last.number if last is not None else 0, moment_ms(spec.since)
        if was is not None and was.alone_ms and not for_all and not _set_since(was, spec):
            return ALONE.format(found.channel)
        if was is not None and (was.uid, was.version) == (found.uid, found.version):
            self._hide(found.channel, "")
            self._know(was._replace(written_ms=min(was.written_ms, written_ms)))
            return ""
        self._end_others(found.channel, number, MISSED, since_ms)
        fault = self._fault(found.channel, spec.image, number)
        said = None
        if not fault:
            try:
                said = said_of(spec, self._present)
            except UnreadableError as error:
                fault = f"rollout/{found.channel}: spec.rollout.members: {error}"
        fault = fault or self._point(found.channel, spec.image)
        self._hide(found.channel, fault if last is not None and last.state in UNDER_WAY else "")
        if fault or said is None:
            if was is not None:  # whose rollout may be over here by now: its word is taken anew where that comes back
                self._know(was._replace(version=""))
            return fault
        row = found.channel, found.uid, found.generation, found.version, written_ms
        self._know(Known(*row, spec.image, spec.image_name, spec.who, since_ms, number))
        if said.rollout is not None:
            self._write(said.rollout)
        return ""

    def follow(self, as_of_ms: int) -> None:
        """All was read at that moment at the earliest."""
        if as_of_ms != self.as_of_ms:
            self._db.execute(_AS_OF, (as_of_ms,))

    def without(self, there: Collection[str], as_of_ms: int, now_ms: int) -> list[Rollout]:
        """Rollouts whose objects are not `there` assign nothing any more, where that is surely of after what was
        written here; those of them that were under way. Channels stay where they point."""
        ended = []
        for name in self.hidden().keys() - there:
            self._hide(name, "")
        gone = [each for each in self.all.values() if each.name not in there and settled(each, as_of_ms)]
        for each in [each for each in gone if not each.alone_ms]:
            ended += self._end_others(each.name, 0, GONE, now_ms)
            self._db.execute("DELETE FROM channels WHERE name = ?", (each.name,))
            del self.all[each.name]
        return ended

    def alone(self, channel: str, image: str, who: str, now_ms: int) -> list[Rollout]:
        """The channel points to the image here alone, until somebody sets it for all; rollouts that end here by
        that."""
        ended = self._end_others(channel, 0, f"channel set by {who}, at this replica alone", now_ms)
        for each in ended:
            rollout_rows.note_down(self._db, each.number, Note(now_ms, who, "channel set"))
        known = self.all.get(channel) or Known(channel, "", 0, "", 0, image, "", who, 0, 0)
        self._know(known._replace(alone_ms=now_ms))
        return ended

    def hidden(self) -> dict[str, str]:
        """Channels whose rollout is under way, and not driven by this replica, for it is not known here: why."""
        return dict(self._db.execute("SELECT channel, why FROM hidden ORDER BY channel"))

    def _hide(self, channel: str, why: str) -> None:
        if self.hidden().get(channel, "") == why:
            return
        if why:
            self._db.execute("INSERT OR REPLACE INTO hidden (channel, why) VALUES (?, ?)", (channel, why))
        else:
            self._db.execute("DELETE FROM hidden WHERE channel = ?", (channel,))

    def _older(self, found: RolloutObject, as_of_ms: int, *, listed: bool) -> bool:
        was = self.all.get(found.channel)
        if was is not None and not listed:  # what was read of all may be of after it
            was = was._replace(written_ms=max(was.written_ms, self.as_of_ms))
        return older(found, was, as_of_ms, listed=listed)

    def _know(self, now: Known) -> None:
        if self.all.get(now.name) != now:
            self._db.execute(_KNOW, now)
            self.all[now.name] = now

    def _fault(self, channel: str, image: str, number: int) -> str:
        """Why a channel cannot be taken over with that image and that rollout; "": it can. Asked before machines are
        unpacked, for who lacks an image asks again and again."""
        others = (name for name, each in self.all.items() if name != channel and each.number == number)
        if number and (other := next(others, "")):
            return OF_TWO.format(channel, number, other)
        try:
            if self._points_to(channel) != image:
                self._repository.verified(image)
        except NotFoundError:
            return STAYS.format(channel, f"image {image[:12]} is not here yet")
        except ImageError as error:
            return STAYS.format(channel, error)
        return ""

    def _points_to(self, channel: str) -> str | None:
        """None: nowhere, or its file is damaged, which setting it mends. Raises images.errors.ImageError."""
        try:
            return self._repository.channel(channel)
        except CorruptError:
            return None

    def _point(self, channel: str, image: str) -> str:
        """The channel points to the image here; why it does not."""
        try:
            if self._points_to(channel) != image:
                self._repository.point(channel, image)
                log.info("channel %s points to %s", channel, image[:12])
        except ImageError as error:
            return STAYS.format(channel, error)
        return ""

    def _end_others(self, channel: str, number: int, why: str, now_ms: int) -> list[Rollout]:
        """Of a channel, all rollouts but that one: those that were under way."""
        of = "SELECT number, body FROM rollouts WHERE channel = ? AND number != ? AND under_way"
        ended = rollout_rows.rollouts_of(self._db, of, channel, number)
        for each in ended:
            body = cancelled(each, why, now_ms).model_dump_json()
            self._db.execute("UPDATE rollouts SET under_way = 0, body = ? WHERE number = ?", (body, each.number))
        release = "UPDATE rollouts SET released = 1 WHERE NOT released AND channel = ? AND number != ?"
        self._db.execute(release, (channel, number))
        return ended

    def _write(self, said: RolloutSaid) -> None:
        db, rollout, number = self._db, said.rollout, said.rollout.number
        row = number, rollout.channel, rollout.under_way, said.released, rollout.model_dump_json()
        db.execute(_ROLLOUT, row)
        there = dict(db.execute("SELECT machine, body FROM members WHERE rollout = ?", (number,)).fetchall())
        now = {name: each.model_dump_json() for name, each in said.members.items()}
        changed = [(number, name, body) for name, body in now.items() if there.get(name) != body]
        db.executemany("INSERT OR REPLACE INTO members (rollout, machine, body) VALUES (?, ?, ?)", changed)
        left = [(number, name) for name in there if name not in now]
        db.executemany("DELETE FROM members WHERE rollout = ? AND machine = ?", left)
        rollout_rows.forget(db)
        if changed or left:
            rollout_rows.keep(db, number, counted(said.members), by_rack(said.members))
        noted = {rollout_rows.note_of(each) for each in rollout_rows.history_of(db, number, 2 * NOTES)}
        for note in said.notes:
            if note not in noted:
                rollout_rows.note_down(db, number, note)


def _set_since(was: Known, spec: RolloutSpec) -> bool:
    """Whether somebody has set a channel for all since it was set here alone, or begun a rollout of it; that one which
    had begun before is complete is no such thing."""
    last, since_ms = spec.rollout, moment_ms(spec.since)
    by_it = last is not None and spec.who == by_rollout(last.number)
    begun_ms = moment_ms(last.started) if last is not None and by_it else since_ms
    return since_ms != was.since_ms and begun_ms > was.alone_ms
