"""Rollouts of this replica alone, where others cannot be told: what is changed is so here until the API server says
again what they are."""

from collections.abc import Callable
from pathlib import Path

from netboot.lifecycle.rollout import Rollout
from netboot.lifecycle.rollout_store import Change, Note
from netboot.stores.known_rollouts import alone
from netboot.stores.rollouts import SqliteRollouts


class RolloutsHere(SqliteRollouts):
    """As that, on the file of `netboot.stores.shared_rollouts`."""

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        super().__init__(path)
        self._now_ms = now_ms

    def change(self, number: int, change: Change, note: Callable[[Rollout, Rollout], Note | None]) -> Rollout:
        changed = super().change(number, change, note)
        self._alone([number])
        return changed

    def release(self, channel: str) -> None:
        super().release(channel)
        with self.opened("ro") as db:
            of = "SELECT number FROM rollouts WHERE channel = ? AND released"
            numbers = [number for (number,) in db.execute(of, (channel,))]
        self._alone(numbers)

    def _alone(self, numbers: list[int]) -> None:
        with self.opened("rw") as db:
            for number in numbers:
                alone(db, number, self._now_ms())
