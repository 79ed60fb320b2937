"""The configuration by which the service runs, and whether netboot.yaml says something else since: some of it is taken
while the service runs, the rest with its next start."""

import logging
from collections.abc import Callable
from pathlib import Path

from images.values.strict import FaultsError
from netboot.config import Config, load_config
from netboot.reread import look

log = logging.getLogger(__name__)

RELOADED = frozenset(
    {
        "inventory_limits",
        "kernel_from_origins",
        "log",
        "minimum_epoch",
        "origins",
        "retry",
        "time_servers",
    }
)
"""Keys that processes take when they are started again, and that need nothing of what the supervisor holds for them:
no address, no file, no other process, no other wall."""


class RunningConfig:
    """Looks at the file whenever `stat` says that it is another. `adapt`: what the command line says over the file."""

    def __init__(self, file: Path, value: Config, adapt: Callable[[Config], Config] = lambda config: config) -> None:
        self.file, self._adapt, self.value = file, adapt, value
        self._seen: object = ...
        """What it looked like when it was compared last: not yet, for it may be another than `value` was read of."""
        self._words = ""
        self.reloads = 0
        """How often it was asked to `reload`."""
        self.taken: tuple[str, ...] = ()
        """Keys that were taken the last time."""

    def words(self) -> str:
        """What is to be said of the file; "": nothing."""
        seen = look(self.file)
        if seen != self._seen:
            self._seen, self._words = seen, self._compared()
        return self._words

    def reload(self) -> bool:
        """Take what may be taken; whether anything was, so that processes have to be started again."""
        self.reloads, self.taken = self.reloads + 1, ()
        try:
            now = self._adapt(load_config(self.file))
        except FaultsError as error:
            log.warning("netboot.yaml has faults, and nothing of it is taken: %s", error.faults[0])
            return False
        taken = self._changed(now) & RELOADED
        self.taken = tuple(sorted(taken))
        self.value = self.value.model_copy(update={name: getattr(now, name) for name in taken})
        self._seen, self._words = look(self.file), self._compared()
        if taken:
            log.info("netboot.yaml: %s taken; processes are started again, one after the other", ", ".join(self.taken))
        return bool(taken)

    def _changed(self, now: Config) -> set[str]:
        return {name for name in Config.model_fields if getattr(now, name) != getattr(self.value, name)}

    def _compared(self) -> str:
        try:
            changed = self._changed(self._adapt(load_config(self.file)))
        except FaultsError as error:
            return f"{self.file} was changed and has faults, so the service would not start again: {error.faults[0]}"
        parts = [
            f"`netboot config reload` takes {', '.join(sorted(changed & RELOADED))}" if changed & RELOADED else "",
            f"needs a restart: {', '.join(sorted(changed - RELOADED))}" if changed - RELOADED else "",
        ]
        return f"{self.file} was changed since the service took it: {'; '.join(filter(None, parts))}" if changed else ""
