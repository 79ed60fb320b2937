"""Whether netboot.yaml says something else than what the service runs by, which reads it at its start alone."""

from pathlib import Path

from images.values.strict import FaultsError
from netboot.config import Config, load_config
from netboot.reread import look


class ChangedConfig:
    """Looks at the file whenever `stat` says that it is another. What `netboot serve` itself was told of the log does
    not count."""

    def __init__(self, file: Path, running: Config) -> None:
        self._file, self._running = file, running
        self._seen = look(file)
        self._words = ""

    def words(self) -> str:
        """What is to be said of it; "": nothing."""
        seen = look(self._file)
        if seen != self._seen:
            self._seen, self._words = seen, self._compared()
        return self._words

    def _compared(self) -> str:
        try:
            now = load_config(self._file)
        except FaultsError as error:
            return f"{self._file} was changed and has faults, so the service would not start again: {error.faults[0]}"
        changed = sorted(
            name for name in Config.model_fields if name != "log" and getattr(now, name) != getattr(self._running, name)
        )
        if not changed:
            return ""
        return f"{self._file} was changed ({', '.join(changed)}), and the service runs by what it said at the start"
