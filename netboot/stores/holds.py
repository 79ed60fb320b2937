"""`data/holds/said.json`: what became of each Hold, as the controllers wrote it last. Unlike a status it is there over
restarts: of an object that was deleted meanwhile it has the uid."""

from pathlib import Path

from netboot.lifecycle.holds import HoldsSaid
from netboot.stores.status import StatusFile, StatusFolder

_FOLDER, _NAME = "holds", "said"


class SaidHolds:
    """The file."""

    def __init__(self, data: Path) -> None:
        self._folder = data / _FOLDER
        self._file = StatusFile(self._folder, _NAME)

    def read(self) -> HoldsSaid | None:
        """None: there is none. Raises CannotTellError."""
        return StatusFolder(self._folder).read(_NAME, HoldsSaid)

    def write(self, said: HoldsSaid) -> bool:
        """Whether it could be written."""
        return self._file.write(said)
