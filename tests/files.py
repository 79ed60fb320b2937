"""What a running service has written."""

import stat
import time
from pathlib import Path

_TRIES_SECONDS = 30.0


def contents(folder: Path) -> dict[Path, bytes]:
    """Every regular file below a folder in which a service writes, read whole.

    A file that goes meanwhile (a temporary one that is renamed, say) makes it read them all once more: what it held may
    be in one that was read before. FileNotFoundError: for 30 s each time one had gone.
    """
    deadline = time.monotonic() + _TRIES_SECONDS
    while True:
        try:
            return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if stat.S_ISREG(path.lstat().st_mode)}
        except FileNotFoundError:
            if time.monotonic() >= deadline:
                raise
