"""Reading the inventory's files, in a thread or not."""

import threading

from images.values.strict import FaultsError
from netboot.config import Config
from netboot.controllers.changes import Changes
from netboot.machines.values import Inventory
from netboot.stores.inventory import read_inventory


class Reading(threading.Thread):
    """A look at the inventory's files, which are read if they changed (or `anyway`); in this thread (`start`) or the
    caller's (`run`). `unread`: what the files say now is not known, for they were changing."""

    def __init__(self, config: Config, changes: Changes, *, now: bool, anyway: bool) -> None:
        super().__init__(name="inventory", daemon=True)
        self._config, self._changes, self._now, self._anyway = config, changes, now, anyway
        self._outcome: Inventory | Exception | None = None
        self.unread = False

    def run(self) -> None:
        """Look, and read."""
        try:
            if self._changes.settled(now=self._now) or self._anyway:
                self._outcome = _read(self._config)
                if self._changes.moved():  # one file may have been read before an edit of all, another after it
                    self._outcome, self.unread = None, True
            else:
                self.unread = self._changes.unread
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            self._outcome = error

    def inventory_or_none(self) -> Inventory | FaultsError | None:
        """What was read, or what is wrong with it, after the end; None: nothing changed, or it is changing still.

        Raises:
            Exception: whatever else the reading raised.
        """
        if isinstance(self._outcome, Exception) and not isinstance(self._outcome, FaultsError):
            raise self._outcome
        return self._outcome


def _read(config: Config) -> Inventory | FaultsError:
    try:
        return read_inventory(config)
    except FaultsError as error:
        return error
