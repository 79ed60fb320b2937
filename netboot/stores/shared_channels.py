"""Where channels point, among replicas: `netboot.lifecycle.image_repository.ImageRepositoryWriter` on objects of an API
server (`netboot.lifecycle.assignment_objects`), and on the store here.

Who sets a channel writes its object, then the store here; others take it over from what they read of all (`follow`),
each word of an object once: so what a person sets here alone, with the API server away, stays until somebody sets it.
"""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from images.errors import ImageError, NotFoundError
from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.assignment_objects import AssignmentObject, AssignmentObjects, AssignmentSpec, spec_of
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.rollout import Rollout
from netboot.logs import Trouble
from netboot.stores.image_repository import StoreImageRepository
from netboot.stores.known_orders import older
from netboot.stores.rollouts import SqliteRollouts

log = logging.getLogger(__name__)

TRIES = 5
_KNOW = "INSERT OR REPLACE INTO channels (name, uid, generation, written_ms) VALUES (?, ?, ?, ?)"


class _Known(NamedTuple):
    """Which word of an object the store has. `written_ms`: as in `netboot.stores.known_orders.Known`."""

    uid: str
    generation: int
    written_ms: int


class SharedChannels:
    """Safe for threads and processes, and for those of other replicas. `path`: of the rollouts' file, where it is
    written down which words of objects were taken over."""

    def __init__(
        self, path: Path, objects: AssignmentObjects, repository: StoreImageRepository, now_ms: Callable[[], int]
    ) -> None:
        self._file, self._objects, self._repository, self._now_ms = SqliteRollouts(path), objects, repository, now_ms
        self._trouble = Trouble(log, "channels are not known here", "channels are known here again", logging.WARNING)

    def point(self, channel: str, digest: str, who: str) -> str | None:
        """As the port has it. Raises ClusterUnavailableError: nothing was done."""
        before = self._repository.channel(channel)
        there = self._set(channel, self._spec(digest, who))
        self._here(there)
        return before

    def complete(self, rollout: Rollout, under_way: Callable[[], bool]) -> None:
        """Its channel points to its image, unless somebody has set it, or ended the rollout, before. `under_way()`:
        whether it is as the API server has it now; asked between a read of the channel and the write that goes by that:
        who ends a rollout and sets its channel does so in this order.

        Raises:
            ClusterUnavailableError: it is not so, or that cannot be told.
        """
        there = self._objects.read(rollout.channel)
        image = there.image if there is not None else self._repository.channel(rollout.channel)
        meanwhile = ClusterUnavailableError(f"channel {rollout.channel} was set, or the rollout ended, meanwhile")
        if image not in (rollout.base, rollout.image) or not under_way():
            raise meanwhile
        if there is None or image != rollout.image:
            try:
                there = self._written(rollout.channel, self._spec(rollout.image, f"rollout {rollout.number}"), there)
            except ConflictError:
                raise meanwhile from None
        self._here(there)

    def _spec(self, digest: str, who: str) -> AssignmentSpec:
        return spec_of(digest, self._repository.image(digest).name, who, self._now_ms())

    def _here(self, there: AssignmentObject) -> None:
        """The store has it, and that is known."""
        self._repository.point(there.channel, there.image)
        try:
            with self._file.opened("rw") as db:
                _know(db, there, self._now_ms())
        except StateUnavailableError as error:  # it is taken over once more, from what is read of all
            self._trouble.note(str(error))
        else:
            self._trouble.note(None)

    def keep(self, owner: str, digests: Sequence[str]) -> None:
        self._repository.keep(owner, digests)

    def follow(self, objects: Sequence[AssignmentObject], as_of_ms: int) -> list[str]:
        """Take over what was read of all objects, as they were at that moment at the earliest, by this host's clock;
        what is wrong with which of them, in words.

        Raises:
            StateUnavailableError.
        """
        with self._file.opened("ro") as db:
            rows = db.execute("SELECT name, uid, generation, written_ms FROM channels").fetchall()
        known = {name: _Known(*row) for name, *row in rows}
        return [fault for each in objects if (fault := self._take(each, known.get(each.channel), as_of_ms))]

    def _take(self, said: AssignmentObject, was: _Known | None, as_of_ms: int) -> str:
        """Why it is not so here; "": it is, or is older than what is known."""
        if not said.image or older(said, was, as_of_ms, listed=True):
            return said.fault
        try:
            now = self._repository.channel(said.channel)
            if was is not None and (was.uid, was.generation) == (said.uid, said.generation):
                return _differs(said, now)
            if now != said.image:
                self._repository.verified(said.image)
                self._repository.point(said.channel, said.image)
                log.info("channel %s points to %s, as another replica has set it", said.channel, said.image[:12])
        except NotFoundError:
            return f"channel {said.channel} stays as it is: image {said.image[:12]} is not here yet"
        except ImageError as error:
            return f"channel {said.channel} stays as it is: {error}"
        with self._file.opened("rw") as db:
            _know(db, said, 0)
        return ""

    def _set(self, channel: str, spec: AssignmentSpec) -> AssignmentObject:
        """The object that says so, whatever it said before."""
        for _ in range(TRIES):
            with suppress(ConflictError):
                return self._written(channel, spec, self._objects.read(channel))
        raise ClusterUnavailableError(f"channel {channel} is set by others all the time: try again")

    def _written(self, channel: str, spec: AssignmentSpec, before: AssignmentObject | None) -> AssignmentObject:
        """The object that says so. Whether a write was done that was not answered is asked, once. Raises
        ConflictError: it is another one by now."""
        try:
            return self._objects.write(channel, spec, before)
        except ClusterUnavailableError:
            there = self._objects.read(channel)
            if there is None or there.image != spec.image or there == before:
                raise
            return there


def _know(db: sqlite3.Connection, said: AssignmentObject, written_ms: int) -> None:
    db.execute(_KNOW, (said.channel, said.uid, said.generation, written_ms))


def _differs(said: AssignmentObject, now: str | None) -> str:
    if now == said.image:
        return ""
    there, here = said.image[:12], (now or "nothing")[:12]
    return f"channel {said.channel} points to {here} at this replica alone, and to {there} elsewhere: set it again"
