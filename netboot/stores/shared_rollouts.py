"""Rollouts that replicas share: `netboot.lifecycle.rollout_store.RolloutStore` on objects of an API server
(`netboot.lifecycle.rollout_objects`), and on the file where they are known here.

What is asked goes by the file, which has what this replica wrote or read itself, and what was read of all objects some
time ago (`follow`). A change is decided by what the file has, and written by the version that this is of: where
another replica was faster the API server refuses it, and it is decided anew by what is there.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from images.errors import ImageError
from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.errors import NoSuchRolloutError, RolloutRefusedError, StateUnavailableError
from netboot.lifecycle.rollout import Rollout, RolloutState
from netboot.lifecycle.rollout_objects import (
    NOTES,
    RolloutObject,
    RolloutObjects,
    RolloutSaid,
    spec_of,
)
from netboot.lifecycle.rollout_orders import another
from netboot.lifecycle.rollout_store import Change, Members, Note
from netboot.logs import Trouble
from netboot.stores.known_orders import untold
from netboot.stores.known_rollouts import (
    GONE,
    OTHER,
    as_of,
    ended_first,
    extras,
    known_of,
    needless,
    none_under_way,
    said_of,
    take,
    waits,
    without,
)
from netboot.stores.rollout_rows import one
from netboot.stores.rollout_writes import read, written
from netboot.stores.rollouts import SqliteRollouts

log = logging.getLogger(__name__)

TRIES = 5


class SharedRollouts(SqliteRollouts):
    """Safe for threads and processes, and for those of other replicas."""

    def __init__(
        self, path: Path, objects: RolloutObjects, channel: Callable[[str], str | None], now_ms: Callable[[], int]
    ) -> None:
        """`channel`: where one points here; raises images.errors.ImageError."""
        super().__init__(path)
        self._objects, self._channel, self._now_ms = objects, channel, now_ms
        self._trouble = Trouble(log, "rollouts are not known here", "rollouts are known here again", logging.WARNING)

    def now(self, number: int) -> Rollout:
        """As the API server has it at this moment. Raises NoSuchRolloutError."""
        return read(self._objects, number)[1].rollout

    def refresh(self) -> None:
        at_ms = self._now_ms()
        self.follow(self._objects.all(), at_ms)

    def behind(self) -> str:
        with self.opened("ro") as db:
            row = db.execute("SELECT as_of_ms FROM followed").fetchone()
        as_of_ms = int(row[0]) if row is not None else 0
        return untold("what other replicas did about rollouts,", as_of_ms, self._now_ms())

    def unshared(self) -> list[Rollout]:
        with self.opened("ro") as db:
            known = known_of(db)
        return [each for each in self.under_way() if each.number not in known]

    def start(self, rollout: Rollout, members: Members, note: Note) -> Rollout:
        for there in self.under_way():  # of before rollouts were objects, too
            if there.channel == rollout.channel:
                raise RolloutRefusedError(another(there))
        objects = self._objects.all()
        for _ in range(TRIES):
            none_under_way(objects, rollout.channel, before=None)
            number = 1 + max([self._newest(), *(each.number for each in objects)], default=0)
            begun = rollout.model_copy(update={"number": number})
            made = written(self._objects, RolloutSaid(begun, members, (note,)), None)
            objects = self._objects.all()
            if made is None:  # another one has that number
                continue
            try:
                none_under_way(objects, rollout.channel, before=number)
            except RolloutRefusedError:  # another replica was faster
                self._objects.delete(made)
                raise
            self._note([made])
            return begun
        raise _changed(f"numbers of rollouts of channel {rollout.channel}")

    def change(self, number: int, change: Change, note: Callable[[Rollout, Rollout], Note | None]) -> Rollout:
        there, said = self._here(number)
        if there is None and said is not None:  # it began before rollouts were objects
            return super().change(number, change, note)
        for _ in range(TRIES):
            if there is None or said is None:
                there, said = read(self._objects, number)
            rollout, members = change(said.rollout, dict(said.members))
            line = note(said.rollout, rollout)
            notes = (*said.notes, line)[-NOTES:] if line is not None else said.notes
            after = said._replace(rollout=rollout, members=said.members | members, notes=notes)
            if after == said or spec_of(after) == spec_of(said):
                self._note([there])
                return rollout
            if (now := written(self._objects, after, there)) is not None:
                self._note([now])
                return rollout
            there = None
        raise _changed(f"rollout {number}")

    def release(self, channel: str) -> None:
        newest = self._last_of(channel)
        there, _ = self._here(newest)
        if there is not None:  # else there is none, or it began before rollouts were objects
            self._release(newest)
        super().release(channel)

    def _release(self, number: int) -> None:
        for _ in range(TRIES):
            there, said = read(self._objects, number)
            if said.rollout.under_way:
                if (ended := self._ended_alone(number)) is None:
                    return
                said = said._replace(rollout=ended)
            elif said.released:
                return
            if (now := written(self._objects, said._replace(released=True), there)) is not None:
                self._note([now])
                return
        raise _changed(f"rollout {number}")

    def _ended_alone(self, number: int) -> Rollout | None:
        """As it was ended here while others could not be told; None: it was not."""
        with self.opened("ro") as db:
            known, rollout = known_of(db).get(number), one(db, number)
        return rollout if known is not None and known.alone_ms and not rollout.under_way else None

    def follow(self, objects: Sequence[RolloutObject], as_of_ms: int) -> list[str]:
        """What was read of all objects, as they were at that moment at the earliest, by this host's clock; which of
        them are none, in words.

        Raises:
            StateUnavailableError.
        """
        extra = {each.number for each in extras(objects)}
        others = {each.number for each in self.unshared()} & {each.number for each in objects}
        waiting = self._before_their_channels(objects)
        with self.opened("rw") as db:
            db.execute("BEGIN IMMEDIATE")
            known = known_of(db)
            ended = without(db, {each.number for each in objects}, known, as_of_ms, self._now_ms())
            for each in ended_first(objects):
                if each.number not in extra | others and not waits(each, waiting):
                    take(db, each, known, as_of_ms, listed=True)
            as_of(db, as_of_ms)
            db.execute("COMMIT")
        for rollout in ended:
            log.warning("rollout %d of channel %s has ended: %s", rollout.number, rollout.channel, GONE)
        faults = [each.fault for each in objects if each.said is None]
        faults += [OTHER.format(number) for number in sorted(others)]
        return faults + [
            f"rollout {number} is complete elsewhere, and channel {channel} does not point to its image here yet"
            for channel, number in waiting.items()
        ]

    def _before_their_channels(self, objects: Sequence[RolloutObject]) -> dict[str, int]:
        """Channel → the rollout of it that is complete, and under way here until the channel is moved here, too: else
        machines would boot what they had before. One that was moved back by hand is no reason, for that releases it."""
        here = {each.number for each in self.under_way()}
        found = dict[str, int]()
        for each in objects:
            if each.said is None or each.said.released or each.number not in here:
                continue
            rollout = each.said.rollout
            if rollout.state is RolloutState.COMPLETE and rollout.base != rollout.image:
                with suppress(ImageError):  # what it points to cannot be told, and it is no base of anything
                    if self._channel(rollout.channel) == rollout.base:
                        found[rollout.channel] = each.number
        return found

    def tidy(self, objects: Sequence[RolloutObject]) -> None:
        """Delete those of which nothing is to come: by one replica, which leads.

        Raises:
            CannotTellError: not all.
        """
        for each in needless(objects):
            there = self._objects.read(each.number)
            if there is not None and there.generation == each.generation:
                with suppress(ConflictError):
                    self._objects.delete(there)

    def _last_of(self, channel: str) -> int:
        with self.opened("ro") as db:
            found = db.execute("SELECT max(number) FROM rollouts WHERE channel = ?", (channel,)).fetchone()
        return int(found[0] or 0)

    def _newest(self) -> int:
        """The highest number that was ever given here."""
        with self.opened("ro") as db:
            row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'rollouts'").fetchone()
        return int(row[0]) if row is not None else 0

    def _here(self, number: int) -> tuple[RolloutObject | None, RolloutSaid | None]:
        """As it is known here: its object, which there need not be, and what it says."""
        with self.opened("ro") as db:
            known = known_of(db).get(number)
            try:
                said = said_of(db, number)
            except NoSuchRolloutError:
                return None, None
        if known is None:
            return None, said
        return RolloutObject(number, known.uid, known.generation, known.version, said), said

    def _note(self, objects: Iterable[RolloutObject]) -> None:
        """What was written there is so, whatever this disk says; who follows objects brings it here."""
        try:
            with self.opened("rw") as db:
                db.execute("BEGIN IMMEDIATE")
                known = known_of(db)
                for each in objects:
                    take(db, each, known, self._now_ms(), listed=False)
                db.execute("COMMIT")
        except StateUnavailableError as error:
            self._trouble.note(str(error))
        else:
            self._trouble.note(None)


def _changed(what: str) -> ClusterUnavailableError:
    return ClusterUnavailableError(f"{what} is changed by others all the time: try again")
