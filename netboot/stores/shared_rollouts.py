"""Rollouts that replicas share, and where channels point: `netboot.lifecycle.rollout_store.RolloutStore` on objects of
an API server (`netboot.lifecycle.rollout_objects`), and on the file where they are known here.

What is asked goes by the file, which has what this replica wrote or read itself, and what was read of all objects some
time ago (`follow`). A change is decided by what the file has, and written by the version that this is of: where
another replica was faster the API server refuses it, and it is decided anew by what is there.
"""

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.errors import RolloutRefusedError, StateUnavailableError
from netboot.lifecycle.packed_members import UnreadableError, have_room
from netboot.lifecycle.rollout import Assigned, Rollout, RolloutState
from netboot.lifecycle.rollout_objects import (
    RolloutObject,
    RolloutObjects,
    RolloutSaid,
    Said,
    by_rollout,
    said_of,
    spec_of,
)
from netboot.lifecycle.rollout_orders import another, cancelled
from netboot.lifecycle.rollout_specs import LAST_NUMBER, NOTES
from netboot.lifecycle.rollout_store import Change, Members, Note
from netboot.logs import Trouble
from netboot.stores.image_repository import StoreImageRepository
from netboot.stores.known_orders import untold
from netboot.stores.known_rollouts import ALONE, GONE, KnownChannels
from netboot.stores.rollouts import SqliteRollouts

log = logging.getLogger(__name__)

TRIES = 5
WHAT = "what other replicas did about rollouts,"
SET = "channel {} was set elsewhere a moment ago: look again"
CHANGED = "rollout/{} is changed by others all the time: try again"
NOT_THERE = (
    "the API server has no rollout/{0} any more: `netboot channel set {0} --force` makes it anew, and ends its rollout"
)


class SharedRollouts(SqliteRollouts):
    """Safe for threads and processes, and for those of other replicas. `repository`: images and channels here;
    `present()`: former name → the name of now, of machines of the inventory in force."""

    in_force = "SELECT number, body FROM rollouts WHERE NOT released ORDER BY number"
    """All others of a channel are released with what its object says, which after a restore is not the newest."""

    def __init__(
        self,
        path: Path,
        objects: RolloutObjects,
        repository: StoreImageRepository,
        present: Callable[[], Mapping[str, str]],
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(path)
        self._objects, self._repository, self._present, self._now_ms = objects, repository, present, now_ms
        self._trouble = Trouble(log, "rollouts are not known here", "rollouts are known here again", logging.WARNING)

    # -- where channels point

    def channel(self, name: str) -> str | None:
        """The image that it points to for all, as far as that is known here; None: it was never set. Raises
        images.errors.ImageError, StateUnavailableError."""
        with self.opened("ro") as db:
            known = KnownChannels(db, self._repository).all.get(name)
        return known.image if known is not None and not known.alone_ms else self._repository.channel(name)

    def point(self, channel: str, digest: str, who: str, *, end: bool = False) -> list[int]:
        """As `netboot.lifecycle.image_repository.ImageRepositoryWriter` has it, for all replicas; what its last rollout
        left assigned is assigned no more. Here it points there even where what others did cannot be written down.

        Raises:
            ClusterUnavailableError: others cannot be told, and nothing was done. images.errors.ImageError.
        """
        name, now_ms = self._repository.image(digest).name, self._now_ms()
        for _ in range(TRIES):
            there, said = self._read(channel)
            last, over = said.rollout if said is not None else None, said.under_way if said is not None else None
            if over is not None and not end:
                raise RolloutRefusedError(another(over))
            if last is not None and over is not None:
                notes = (*last.notes, Note(now_ms, who, "channel set"))[-NOTES:]
                last = last._replace(rollout=cancelled(over, f"channel set by {who}", now_ms), notes=notes)
            last = last._replace(released=True) if last is not None else None
            fault = self._written(channel, Said(digest, name, who, now_ms, last), there, for_all=True)
            if fault is None:
                continue
            if fault:
                self._repository.point(channel, digest)
            return [over.number] if over is not None else []
        raise ClusterUnavailableError(CHANGED.format(channel))

    def alone(self, channel: str, digest: str, who: str) -> list[int] | None:
        """The channel points to the image at this replica, which cannot tell others, until somebody sets it for all;
        numbers of rollouts that ended here by that. None: it does, but that cannot be written down, and what rollouts
        assigned stays so. Raises images.errors.ImageError."""
        self._repository.point(channel, digest)
        try:
            with self.opened("rw") as db:
                db.execute("BEGIN IMMEDIATE")
                ended = self._known(db).alone(channel, digest, who, self._now_ms())
                db.execute("COMMIT")
        except StateUnavailableError as error:
            log.warning("channel %s was set, and that it was is not written down: %s", channel, error)
            return None
        return [each.number for each in ended]

    def keep(self, owner: str, digests: Sequence[str]) -> None:
        """As the same port has it."""
        self._repository.keep(owner, digests)

    # -- rollouts

    def start(self, rollout: Rollout, members: Members, note: Note) -> Rollout:
        channel = rollout.channel
        have_room(members.values())
        for _ in range(TRIES):
            there, said = self._read(channel)
            if said is None:  # it has pointed there since before that was shared
                said = Said(rollout.base, self._repository.image(rollout.base).name, note.who, note.at_ms)
            if said.under_way is not None:
                raise RolloutRefusedError(another(said.under_way))
            if said.image != rollout.base:
                raise RolloutRefusedError((ALONE if self._is_alone(channel) else SET).format(channel))
            number = self._objects.number(1 + max(self._newest(), *map(_number, self._objects.all()), 0))
            if number > LAST_NUMBER:
                raise RolloutRefusedError(
                    f"rollouts have numbers up to {LAST_NUMBER:,}, and there is one with the last"
                )
            begun = rollout.model_copy(update={"number": number})
            after = said._replace(since_ms=self._now_ms(), rollout=RolloutSaid(begun, dict(members), (note,)))
            if self._written(channel, after, there, for_all=True) is not None:
                return begun
        raise ClusterUnavailableError(CHANGED.format(channel))

    def change(self, number: int, change: Change, note: Callable[[Rollout, Rollout], Note | None]) -> Rollout:
        channel = self.rollout(number).channel
        there, said = self._here(channel)
        as_of_ms = self._now_ms()
        for _ in range(TRIES):
            if there is None or said is None:
                as_of_ms = self._now_ms()
                there, said = self._read(channel)
            if there is None or said is None:
                raise ClusterUnavailableError(NOT_THERE.format(channel))
            was = said.rollout
            if was is None or was.rollout.number != number:  # another one came after it: it has ended, here too
                self._note([there], as_of_ms)
                return super().change(number, change, note)
            rollout, members = change(was.rollout, dict(was.members))
            line = note(was.rollout, rollout)
            notes = (*was.notes, line)[-NOTES:] if line is not None else was.notes
            after = was._replace(rollout=rollout, members=was.members | members, notes=notes)
            if after == was or self._written(channel, _after(said, after, self._now_ms()), there) is not None:
                return rollout
            there = None
        raise ClusterUnavailableError(CHANGED.format(channel))

    def release(self, channel: str) -> None:
        there, said = self._here(channel)
        for _ in range(TRIES):
            if there is None or said is None or said.rollout is None or said.rollout.released or said.under_way:
                return
            after = said._replace(rollout=said.rollout._replace(released=True))
            if self._written(channel, after, there) is not None:
                return
            there, said = self._read(channel)
        raise ClusterUnavailableError(CHANGED.format(channel))

    def assigned(self) -> Mapping[str, Assigned]:
        self._require_known()
        return super().assigned()

    def images(self) -> set[str]:
        self._require_known()
        return super().images()

    # -- what other replicas did

    def follow(self, objects: Sequence[RolloutObject], as_of_ms: int) -> list[str]:
        """Take over what was read of all objects, as they were at that moment at the earliest, by this host's clock;
        which of them are not so here, in words.

        Raises:
            StateUnavailableError.
        """
        with self.opened("rw") as db:
            db.execute("BEGIN IMMEDIATE")
            known = self._known(db)
            ended = known.without({each.channel for each in objects}, as_of_ms, self._now_ms())
            faults = [known.take(each, as_of_ms, listed=True) for each in objects]
            known.follow(as_of_ms)
            db.execute("COMMIT")
        for rollout in ended:
            log.warning("rollout %d of channel %s has ended: %s", rollout.number, rollout.channel, GONE)
        return [fault for fault in faults if fault]

    def refresh(self) -> None:
        as_of_ms = self._now_ms()
        self._note(self._objects.all(), as_of_ms)

    def behind(self) -> str:
        with self.opened("ro") as db:
            known = KnownChannels(db, self._repository)
        alone = [name for name, each in known.all.items() if each.alone_ms]
        untold_ = untold(WHAT, known.as_of_ms, self._now_ms())
        return "; ".join(filter(None, (untold_, *map(ALONE.format, alone))))

    def hidden(self) -> list[str]:
        with self.opened("ro") as db:
            return list(KnownChannels(db, self._repository).hidden().values())

    # -- objects

    def _known(self, db: sqlite3.Connection) -> KnownChannels:
        return KnownChannels(db, self._repository, self._present())

    def _is_alone(self, channel: str) -> bool:
        with self.opened("ro") as db:
            known = KnownChannels(db, self._repository).all.get(channel)
        return known is not None and bool(known.alone_ms)

    def _require_known(self) -> None:
        """Raises StateUnavailableError: nothing was read of others yet, and nothing was set here alone: who has such
        a file has heard of no rollout, which is not to say that there is none."""
        with self.opened("ro") as db:
            known = KnownChannels(db, self._repository)
        if not known.as_of_ms and not known.all:
            raise StateUnavailableError(untold(WHAT, 0, self._now_ms()))

    def _newest(self) -> int:
        with self.opened("ro") as db:
            return int(db.execute("SELECT max(number) FROM rollouts").fetchone()[0] or 0)

    def _here(self, channel: str) -> tuple[RolloutObject | None, Said | None]:
        """As it is known here."""
        with self.opened("ro") as db:
            known = KnownChannels(db, self._repository)
            said, word = known.said(channel), known.all.get(channel)
        if said is None or word is None or not word.version:
            return None, None
        return RolloutObject(channel, word.uid, word.generation, word.version, None), said

    def _read(self, channel: str) -> tuple[RolloutObject | None, Said | None]:
        """As it is there now."""
        there = self._objects.read(channel)
        if there is None:
            return None, None
        try:
            if there.spec is not None:
                return there, said_of(there.spec, self._present())
            fault = there.fault
        except UnreadableError as error:
            fault = f"rollout/{channel}: spec.rollout.members: {error}"
        raise ClusterUnavailableError(f"{fault}: correct it there, or delete it, which ends its rollout")

    def _written(self, channel: str, said: Said, there: RolloutObject | None, *, for_all: bool = False) -> str | None:
        """The object says so: why that is not so here, "" where it is. None: it is another one by now. Whether a write
        was done that was not answered is asked, once. `for_all`: it sets the channel for all, or begins a rollout."""
        spec, as_of_ms, knew = spec_of(said), self._now_ms(), self._version(channel)
        try:
            now = self._objects.write(channel, spec, there)
        except ConflictError:
            return None
        except ClusterUnavailableError:
            found = self._objects.read(channel)
            if found is None or found.spec != spec:
                raise
            now = found
        return self._note([now], as_of_ms, for_all=for_all, knew=knew)

    def _version(self, channel: str) -> str | None:
        """That which is known here; "": none, None: that cannot be told."""
        try:
            with self.opened("ro") as db:
                known = KnownChannels(db, self._repository).all.get(channel)
        except StateUnavailableError:
            return None
        return known.version if known is not None else ""

    def _note(
        self, objects: Sequence[RolloutObject], as_of_ms: int, *, for_all: bool = False, knew: str | None = None
    ) -> str:
        """Why they are not so here; "": they are. What was written there is so, whatever this disk says; who follows
        objects brings it here."""
        try:
            with self.opened("rw") as db:
                db.execute("BEGIN IMMEDIATE")
                known = self._known(db)
                faults = [known.take(each, as_of_ms, for_all=for_all, knew=knew) for each in objects]
                db.execute("COMMIT")
        except StateUnavailableError as error:
            faults = [str(error)]
        said = "; ".join(filter(None, faults))
        self._trouble.note(said or None)
        return said


def _number(found: RolloutObject) -> int:
    """Of its rollout; 0: it has none that can be read."""
    return found.spec.rollout.number if found.spec is not None and found.spec.rollout is not None else 0


def _after(said: Said, after: RolloutSaid, now_ms: int) -> Said:
    """What an object says after a change of its rollout: one that is complete moves its channel, in the same write."""
    rollout, now = after.rollout, said._replace(rollout=after)
    if said.under_way is None or rollout.state is not RolloutState.COMPLETE:
        return now
    who = by_rollout(rollout.number)
    return now._replace(image=rollout.image, image_name=rollout.image_name, who=who, since_ms=now_ms)
