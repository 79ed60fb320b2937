"""The published snapshot, as the control plane looks at it: read again when it was published again."""

import threading
from pathlib import Path

from netboot.lifecycle.decide import View
from netboot.lifecycle.errors import NotReadyError
from netboot.stores.snapshot import Signature, read_snapshot, signature


class LiveView:
    """Safe for threads. A file that cannot be used leaves the view before in force."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._seen: Signature | None = None
        self._view: View | None = None
        self.problem: str | None = None
        """Why the file as it is now is not what is in force; None: it is."""

    def view(self) -> View:
        """The view in force.

        Raises:
            NotReadyError: nothing usable has been published yet.
        """
        now = signature(self._path)
        if now != self._seen or now is None:
            with self._lock:
                if now != self._seen or now is None:
                    self._refresh(now)
        if self._view is None:
            raise NotReadyError(self.problem or "nothing has been published yet")
        return self._view

    def _refresh(self, now: Signature | None) -> None:
        try:
            self._view = View.of(read_snapshot(self._path))
            self.problem = None
        except NotReadyError as error:
            self.problem = str(error)
        self._seen = now
