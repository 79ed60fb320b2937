"""What a process of the service says of itself, for `/readyz` and metrics: `data/status/<name>.json`, swapped whole."""

import json
import os
from pathlib import Path
from typing import Any


def write_status(folder: Path, name: str, value: dict[str, Any]) -> None:
    """Swap the file. Not worth an fsync: a restart writes it anew.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    staged = folder / f".{name}.{os.getpid()}"
    staged.write_text(json.dumps(value, sort_keys=True), encoding="utf-8")
    staged.replace(folder / f"{name}.json")


def read_status(folder: Path, name: str) -> dict[str, Any] | None:
    """What was written; None where there is nothing that can be read."""
    try:
        value = json.loads((folder / f"{name}.json").read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def wipe(folder: Path) -> None:
    """Forget what processes of an earlier run said (or counted: `data/metrics`)."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file():
            path.unlink(missing_ok=True)
