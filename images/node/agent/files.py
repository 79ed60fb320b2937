"""Writing and reading small files."""

import os
from pathlib import Path


def put(path: Path, data: bytes, mode: int) -> None:
    """Replace a file in one instant; nobody ever sees half of it, or it with wider permissions than `mode`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)  # of an agent that was killed
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), mode)
    new.rename(path)


def small(path: Path, limit: int) -> bytes | None:
    """A file's content; None: it is not there, not readable or longer than `limit` bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError:
        return None
    return data if len(data) <= limit else None
