"""What rollouts assigned, as the publisher takes it into the snapshot."""

import logging
from collections.abc import Mapping

from netboot.lifecycle import publish
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.rollout import Assigned
from netboot.lifecycle.rollout_store import RolloutStore
from netboot.lifecycle.snapshot import Snapshot
from netboot.logs import Trouble
from netboot.stores.commits import Changed

log = logging.getLogger(__name__)


class Assignments:
    """Read again when the file of the store changed."""

    def __init__(self, file: Changed, store: RolloutStore) -> None:
        self._file, self._store = file, store
        self._read: Mapping[str, Assigned] | None = None
        self._trouble = Trouble(log, "assignments", "assignments of rollouts: they can be told again")

    def changed(self) -> bool:
        """Whether they may be others than those of before."""
        if not self._file.changed():
            return False
        self._file.taken()  # `assigned` asks again where it fails
        self._read = None
        return True

    def assigned(self, published: Snapshot | None) -> Mapping[str, Assigned]:
        """Machine → what was assigned to it. Where that cannot be told, what was published: machines boot what they
        were assigned."""
        try:
            if self._read is None:
                self._read = self._store.assigned()
        except CannotTellError as error:
            self._trouble.note(str(error))
            return publish.assigned_before(published)
        self._trouble.note(None)
        return self._read

    def images(self) -> set[str]:
        """Those that must outlive garbage collection: assigned, or what machines go back to. Raises CannotTellError."""
        return self._store.images()
