"""What is known here of rollouts that replicas share, and of where channels point: the file, which has what this
replica wrote or read itself, and what was read of all objects some time ago."""

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.rollout import Assigned
from netboot.lifecycle.rollout_objects import RolloutObject, Said
from netboot.logs import Trouble
from netboot.stores.image_repository import StoreImageRepository
from netboot.stores.known_orders import untold
from netboot.stores.known_rollouts import ALONE, GONE, Known, KnownChannels
from netboot.stores.rollouts import SqliteRollouts

log = logging.getLogger(__name__)

WHAT = "what other replicas did about rollouts,"


class FollowedRollouts(SqliteRollouts):
    """Safe for threads and processes. `repository`: images and channels here; `present()`: former name → the name of
    now, of machines of the inventory in force."""

    in_force = "SELECT number, body FROM rollouts WHERE NOT released ORDER BY number"
    """All others of a channel are released with what its object says, which after a restore is not the newest."""

    def __init__(
        self,
        path: Path,
        repository: StoreImageRepository,
        present: Callable[[], Mapping[str, str]],
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(path)
        self._repository, self._present, self._now_ms = repository, present, now_ms
        self._trouble = Trouble(log, "rollouts are not known here", "rollouts are known here again", logging.WARNING)

    def channel(self, name: str) -> str | None:
        """The image that it points to for all, as far as that is known here; None: it was never set. Raises
        images.errors.ImageError, StateUnavailableError."""
        word = self._word(name)
        return word.image if word is not None and not word.alone_ms else self._repository.channel(name)

    def assigned(self) -> Mapping[str, Assigned]:
        self._require_known()
        return super().assigned()

    def images(self) -> set[str]:
        self._require_known()
        return super().images()

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

    def behind(self) -> str:
        with self.opened("ro") as db:
            known = KnownChannels(db, self._repository)
        alone = [name for name, each in known.all.items() if each.alone_ms]
        untold_ = untold(WHAT, known.as_of_ms, self._now_ms())
        return "; ".join(filter(None, (untold_, *map(ALONE.format, alone))))

    def hidden(self) -> list[str]:
        with self.opened("ro") as db:
            return list(KnownChannels(db, self._repository).hidden().values())

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

    def _known(self, db: sqlite3.Connection) -> KnownChannels:
        return KnownChannels(db, self._repository, self._present())

    def _word(self, channel: str) -> Known | None:
        """What is known of its object."""
        with self.opened("ro") as db:
            return KnownChannels(db, self._repository).all.get(channel)

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

    def _version(self, channel: str) -> str | None:
        """That which is known here; "": none, None: that cannot be told."""
        try:
            word = self._word(channel)
        except StateUnavailableError:
            return None
        return word.version if word is not None else ""

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
