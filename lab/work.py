"""Folders for what runs leave behind: under `.work/`, made anew by each run, and nobody takes another's."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK, CACHE = ROOT / ".work", ROOT / ".cache"


@contextlib.contextmanager
def work_folder(name: str) -> Iterator[Path]:
    """`.work/<name>`, empty; it stays afterwards. While one run holds it another gets `.work/<name>-<pid>`."""
    WORK.mkdir(exist_ok=True)
    with (WORK / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder = WORK / name
            _forget_ended(name)
        except BlockingIOError:
            folder = WORK / f"{name}-{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        yield folder


def _forget_ended(name: str) -> None:
    """Remove what runs beside another one left, if they have ended."""
    for folder in WORK.glob(f"{name}-*"):
        pid = folder.name.removeprefix(f"{name}-")
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)
