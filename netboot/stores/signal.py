"""`netboot.lifecycle.intents.Signals`, by what the process `pause` says in a folder that it alone writes: in `status`
several do, the boot servers among them, and whoever broke into one must not let things begin."""

from collections.abc import Callable

from netboot.config import Config
from netboot.lifecycle.errors import CannotTellError
from netboot.machines.maintenance import Signal
from netboot.status import FRESH_MS
from netboot.status.pause import PauseStatus
from netboot.stores.status import StatusFolder

FOLDER, NAME = "pause", "pause"
"""Of `data`; and of the file in there."""


class SaidSignal:
    """Where the configuration names somebody who is asked. Whatever keeps it from being told is a no."""

    def __init__(self, config: Config, up_ms: Callable[[], int]) -> None:
        self._asked, self._up_ms = config.pause is not None, up_ms
        self._where = config.pause.where if config.pause is not None else ""
        self._status = StatusFolder(config.data / FOLDER)

    def said(self) -> Signal | None:
        return self._said() if self._asked else None

    def status(self) -> PauseStatus | None:
        """What the process said last; None: nothing that can be told now, or nobody is asked."""
        try:
            said = self._status.read(NAME, PauseStatus) if self._asked else None
        except CannotTellError:
            return None
        fresh = said is not None and abs(self._up_ms() - said.up_ms) <= FRESH_MS
        return said if fresh else None

    def _said(self) -> Signal:
        said = self.status()
        if said is None:
            words = f"whether {self._where} lets anything begin cannot be told: the process pause is silent"
            return Signal(may=False, reason=words)
        return Signal(may=said.may, reason=said.reason)
