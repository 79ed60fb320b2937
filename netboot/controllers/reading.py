"""Reading the inventory's files, in a thread or not."""

import threading

from images.values.strict import FaultsError
from netboot.config import Config
from netboot.controllers.changes import Changes
from netboot.machines.declarations import Declarations, Judged
from netboot.stores.inventory import joining_of


class Reading(threading.Thread):
    """A look at where the inventory is declared, which is read if it changed (or `anyway`); in this thread (`start`) or
    the caller's (`run`). `unread`: what the files say now is not known, for they were changing."""

    def __init__(
        self, config: Config, declarations: Declarations, changes: Changes, *, now: bool, anyway: bool
    ) -> None:
        super().__init__(name="inventory", daemon=True)
        self._declarations, self._joining = declarations, joining_of(config)
        self._changes, self._now, self._anyway = changes, now, anyway
        self._outcome: Judged | Exception | None = None
        self.unread = False

    def run(self) -> None:
        """Look, and read."""
        try:
            if self._changes.settled(now=self._now) or self._anyway:
                self._outcome = self._read()
                if self._changes.moved():  # one file may have been read before an edit of all, another after it
                    self._outcome, self.unread = None, True
            else:
                self.unread = self._changes.unread
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            self._outcome = error

    def judged_or_none(self) -> Judged | FaultsError | None:
        """What was read, or what is wrong with it, after the end; None: nothing changed, or it is changing still.

        Raises:
            Exception: whatever else the reading raised.
        """
        if isinstance(self._outcome, Exception) and not isinstance(self._outcome, FaultsError):
            raise self._outcome
        return self._outcome

    def _read(self) -> Judged | FaultsError:
        try:
            return self._declarations.judged(self._joining)
        except FaultsError as error:
            self._changes.unusable()
            return error
