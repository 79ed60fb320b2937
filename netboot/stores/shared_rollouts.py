"""Rollouts that replicas share, and where channels point: `netboot.lifecycle.rollout_store.RolloutStore` on objects of
an API server (`netboot.lifecycle.rollout_objects`), and on the file where they are known here.

What is asked goes by the file, which has what this replica wrote or read itself, and what was read of all objects some
time ago (`follow`). A change is decided by what the file has, and written by the version that this is of: where
another replica was faster the API server refuses it, and it is decided anew by what is there.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.errors import RolloutRefusedError, StateUnavailableError
from netboot.lifecycle.packed_members import UnreadableError, have_room
from netboot.lifecycle.rollout import Rollout, RolloutState
from netboot.lifecycle.rollout_objects import RolloutObject, RolloutObjects, RolloutSaid, Said, said_of, spec_of
from netboot.lifecycle.rollout_orders import another, cancelled
from netboot.lifecycle.rollout_specs import NOTES
from netboot.lifecycle.rollout_store import Change, Members, Note
from netboot.logs import Trouble
from netboot.stores.image_repository import StoreImageRepository
from netboot.stores.known_orders import untold
from netboot.stores.known_rollouts import ALONE, GONE, KnownChannels
from netboot.stores.rollouts import SqliteRollouts

log = logging.getLogger(__name__)

TRIES = 5
SET = "channel {} was set elsewhere a moment ago: look again"
CHANGED = "rollout/{} is changed by others all the time: try again"
NOT_THERE = (
    "the API server has no rollout/{0} any more: `netboot channel set {0} --force` makes it anew, and ends its rollout"
)


class SharedRollouts(SqliteRollouts):
    """Safe for threads and processes, and for those of other replicas. `repository`: images and channels here."""

    def __init__(
        self, path: Path, objects: RolloutObjects, repository: StoreImageRepository, now_ms: Callable[[], int]
    ) -> None:
        super().__init__(path)
        self._objects, self._repository, self._now_ms = objects, repository, now_ms
        self._trouble = Trouble(log, "rollouts are not known here", "rollouts are known here again", logging.WARNING)

    # -- where channels point

    def channel(self, name: str) -> str | None:
        """The image that it points to for all, as far as that is known here; None: it was never set. Raises
        images.errors.ImageError, StateUnavailableError."""
        with self.opened("ro") as db:
            said = KnownChannels(db, self._repository).said(name)
        return said.image if said is not None else self._repository.channel(name)

    def point(self, channel: str, digest: str, who: str, *, end: bool = False) -> list[int]:
        """As `netboot.lifecycle.image_repository.ImageRepositoryWriter` has it, for all replicas; what its last rollout
        left assigned is assigned no more.

        Raises:
            ClusterUnavailableError: others cannot be told, and nothing was done.
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
            if self._written(channel, Said(digest, name, who, now_ms, last), there):
                return [over.number] if over is not None else []
        raise ClusterUnavailableError(CHANGED.format(channel))

    def alone(self, channel: str, digest: str, who: str) -> list[int]:
        """The channel points to the image at this replica, which cannot tell others, until somebody sets it for all;
        numbers of rollouts that ended here by that. Raises images.errors.ImageError, StateUnavailableError."""
        with self.opened("rw") as db:
            db.execute("BEGIN IMMEDIATE")
            ended = KnownChannels(db, self._repository).alone(channel, digest, who, self._now_ms())
            db.execute("COMMIT")
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
                raise RolloutRefusedError(SET.format(channel))
            begun = rollout.model_copy(update={"number": self._objects.number(1 + self._newest())})
            after = said._replace(since_ms=self._now_ms(), rollout=RolloutSaid(begun, members, (note,)))
            if self._written(channel, after, there):
                return begun
        raise ClusterUnavailableError(CHANGED.format(channel))

    def change(self, number: int, change: Change, note: Callable[[Rollout, Rollout], Note | None]) -> Rollout:
        channel = self.rollout(number).channel
        there, said = self._here(channel)
        for _ in range(TRIES):
            if there is None or said is None:
                there, said = self._read(channel)
            if there is None or said is None:
                raise ClusterUnavailableError(NOT_THERE.format(channel))
            was = said.rollout
            if was is None or was.rollout.number != number:  # another one came after it: it has ended
                return super().change(number, change, note)
            rollout, members = change(was.rollout, dict(was.members))
            line = note(was.rollout, rollout)
            notes = (*was.notes, line)[-NOTES:] if line is not None else was.notes
            after = was._replace(rollout=rollout, members=was.members | members, notes=notes)
            if after == was or self._written(channel, _after(said, after, self._now_ms()), there):
                return rollout
            there = None
        raise ClusterUnavailableError(CHANGED.format(channel))

    def release(self, channel: str) -> None:
        there, said = self._here(channel)
        for _ in range(TRIES):
            if there is None or said is None or said.rollout is None or said.rollout.released or said.under_way:
                return
            if self._written(channel, said._replace(rollout=said.rollout._replace(released=True)), there):
                return
            there, said = self._read(channel)
        raise ClusterUnavailableError(CHANGED.format(channel))

    # -- what other replicas did

    def follow(self, objects: Sequence[RolloutObject], as_of_ms: int) -> list[str]:
        """Take over what was read of all objects, as they were at that moment at the earliest, by this host's clock;
        which of them are not so here, in words.

        Raises:
            StateUnavailableError.
        """
        with self.opened("rw") as db:
            db.execute("BEGIN IMMEDIATE")
            known = KnownChannels(db, self._repository)
            ended = known.without({each.channel for each in objects}, as_of_ms, self._now_ms())
            faults = [known.take(each, as_of_ms, listed=True) for each in objects]
            known.as_of(as_of_ms)
            db.execute("COMMIT")
        for rollout in ended:
            log.warning("rollout %d of channel %s has ended: %s", rollout.number, rollout.channel, GONE)
        return [fault for fault in faults if fault]

    def refresh(self) -> None:
        self._note(self._objects.all(), own=False)

    def behind(self) -> str:
        with self.opened("ro") as db:
            row = db.execute("SELECT as_of_ms FROM followed").fetchone()
            alone = [name for name, each in KnownChannels(db, self._repository).all.items() if each.alone]
        as_of_ms = int(row[0]) if row is not None else 0
        untold_ = untold("what other replicas did about rollouts,", as_of_ms, self._now_ms())
        return "; ".join(filter(None, (untold_, *map(ALONE.format, alone))))

    # -- objects

    def _newest(self) -> int:
        with self.opened("ro") as db:
            return int(db.execute("SELECT max(number) FROM rollouts").fetchone()[0] or 0)

    def _here(self, channel: str) -> tuple[RolloutObject | None, Said | None]:
        """As it is known here."""
        with self.opened("ro") as db:
            known = KnownChannels(db, self._repository)
            said, word = known.said(channel), known.all.get(channel)
        if said is None or word is None:
            return None, None
        return RolloutObject(channel, word.uid, word.generation, word.version, None), said

    def _read(self, channel: str) -> tuple[RolloutObject | None, Said | None]:
        """As it is there now."""
        there = self._objects.read(channel)
        if there is None:
            return None, None
        try:
            if there.spec is not None:
                return there, said_of(channel, there.spec)
            fault = there.fault
        except UnreadableError as error:
            fault = f"rollout/{channel}: spec.rollout.members: {error}"
        raise ClusterUnavailableError(f"{fault}: correct it there, or delete it, which ends its rollout")

    def _written(self, channel: str, said: Said, there: RolloutObject | None) -> bool:
        """Whether the object says so; False: it is another one by now. Whether a write was done that was not answered
        is asked, once."""
        spec = spec_of(said)
        try:
            now = self._objects.write(channel, spec, there)
        except ConflictError:
            return False
        except ClusterUnavailableError:
            found = self._objects.read(channel)
            if found is None or found.spec != spec:
                raise
            now = found
        self._note([now], own=True)
        return True

    def _note(self, objects: Sequence[RolloutObject], *, own: bool) -> None:
        """What was written there is so, whatever this disk says; who follows objects brings it here."""
        try:
            with self.opened("rw") as db:
                db.execute("BEGIN IMMEDIATE")
                known = KnownChannels(db, self._repository)
                faults = [known.take(each, self._now_ms(), own=own) for each in objects]
                db.execute("COMMIT")
        except StateUnavailableError as error:
            faults = [str(error)]
        self._trouble.note("; ".join(filter(None, faults)) or None)


def _after(said: Said, after: RolloutSaid, now_ms: int) -> Said:
    """What an object says after a change of its rollout: one that is complete moves its channel, in the same write."""
    rollout, now = after.rollout, said._replace(rollout=after)
    if said.under_way is None or rollout.under_way:
        return now
    now = now._replace(since_ms=now_ms)
    if rollout.state is not RolloutState.COMPLETE:
        return now
    return now._replace(image=rollout.image, image_name=rollout.image_name, who=f"rollout {rollout.number}")
