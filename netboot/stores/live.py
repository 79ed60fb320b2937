"""The published snapshot, as everybody but the boot servers looks at it."""

from pathlib import Path

from netboot.lifecycle.errors import NotReadyError
from netboot.lifecycle.published import View
from netboot.reread import Reread
from netboot.stores.snapshot import read_snapshot


class LiveView:
    """Read again when it was published again. Safe for threads."""

    def __init__(self, path: Path) -> None:
        self._file = Reread(
            "snapshot", lambda: (path,), lambda: View.of(read_snapshot(path)), NotReadyError, replaced_whole=True
        )

    @property
    def problem(self) -> str | None:
        """Why the file, as of the last look, is not what is in force; None: it is."""
        return self._file.problem

    def view(self) -> View:
        """The view in force.

        Raises:
            NotReadyError: nothing usable has been published yet.
        """
        return self._file.current()
