"""The lifecycle's loop with what is written down of it."""

from collections.abc import Iterable

from netboot.controllers.boot_records import BootRecords
from netboot.controllers.lifecycle import LifecycleController
from netboot.controllers.pieces import Going, unheard
from netboot.status.controllers import LifecycleStatus


class AndRecords:
    """The lifecycle's loop with what is written down of it."""

    def __init__(self, lifecycle: LifecycleController, records: BootRecords) -> None:
        self._lifecycle, self._records = lifecycle, records

    def told(self, machines: Iterable[str]) -> None:
        """Something came of these; called by other threads."""
        names = set(machines)
        self._records.told(names)
        self._lifecycle.told(names)

    def step(self, going: Going = unheard) -> bool:
        """Judge, then write down; whether there are more to be judged."""
        watched = self._lifecycle.watched
        more = self._lifecycle.step(going)
        self._records.step(going, watched=watched)
        return more

    def status(self) -> LifecycleStatus:
        """The lifecycle's; where that is in order, what keeps records from being written."""
        status = self._lifecycle.status()
        return status.model_copy(update={"problem": status.problem or self._records.problem})
