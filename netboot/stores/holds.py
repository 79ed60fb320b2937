"""`data/holds/said.json`: what became of each Hold, as the controllers wrote it last. Unlike a status it is there over
restarts. What is held, and by which object, is in `data/intents.db`."""

from pathlib import Path

from netboot.lifecycle.holds import HoldsSaid
from netboot.reread import Look, look
from netboot.stores.status import StatusFile, StatusFolder

_FOLDER, _NAME = "holds", "said"
LARGEST = 64 << 20
"""Bytes; that of the most Holds that are followed (`netboot.stores.resources.MOST_HOLDS`), whatever they say, has
fewer."""


class SaidHolds:
    """The file."""

    def __init__(self, data: Path) -> None:
        self._folder = data / _FOLDER
        self._file = StatusFile(self._folder, _NAME)
        self._known: tuple[Look, HoldsSaid | None] = None, None

    def read(self) -> HoldsSaid | None:
        """None: there is none. The very same value while the file is. Raises CannotTellError."""
        now = look(self._folder / f"{_NAME}.json")
        if now is None or now != self._known[0]:
            self._known = now, StatusFolder(self._folder).read(_NAME, HoldsSaid, LARGEST)
        return self._known[1]

    def write(self, said: HoldsSaid) -> bool:
        """Whether it could be written."""
        return self._file.write(said)
