"""Rollouts that replicas share, and where channels point: `netboot.lifecycle.rollout_store.RolloutStore` on objects of
an API server (`netboot.lifecycle.rollout_objects`), and on the file where they are known here.

What is asked goes by the file, which has what this replica wrote or read itself, and what was read of all objects some
time ago (`follow`). A change is decided by what the file has, and written by the version that this is of: where
another replica was faster the API server refuses it, and it is decided anew by what is there.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.errors import RolloutRefusedError
from netboot.lifecycle.packed_members import UnreadableError, have_room
from netboot.lifecycle.rollout import Rollout, RolloutState
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
from netboot.stores.followed_rollouts import FollowedRollouts
from netboot.stores.image_repository import StoreImageRepository
from netboot.stores.known_rollouts import ALONE

TRIES = 5
SET = "channel {} was set elsewhere a moment ago: look again"
CHANGED = "rollout/{} is changed by others all the time: try again"
NOT_THERE = (
    "the API server has no rollout/{0} any more: `netboot channel set {0} --force` makes it anew, and ends its rollout"
)


class SharedRollouts(FollowedRollouts):
    """Safe for threads and processes, and for those of other replicas. `repository`: images and channels here;
    `present()`: former name → the name of now, of machines of the inventory in force."""

    def __init__(
        self,
        path: Path,
        objects: RolloutObjects,
        repository: StoreImageRepository,
        present: Callable[[], Mapping[str, str]],
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(path, repository, present, now_ms)
        self._objects = objects

    # -- where channels point

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
                word = self._word(channel)
                raise RolloutRefusedError((ALONE if word is not None and word.alone_ms else SET).format(channel))
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

    def refresh(self) -> None:
        as_of_ms = self._now_ms()
        self._note(self._objects.all(), as_of_ms)

    # -- objects

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
