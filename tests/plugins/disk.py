"""Whether the disk has room for a whole run, and how much of it the run took: a plugin, `-p tests.plugins.disk`.

On a full disk most tests end in errors that name something else; the run is refused instead, before its first test.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

GIB = 1024**3
NEEDED_GIB = 22.0
"""Of a clean clone: the cache of image builds, what tests write, and what builds and machines write for a while."""
TEMPORARY_GIB = 2.0
"""Of that, where temporary files lie on another file system than the checkout."""

Free = Callable[[Path], int]
"""Bytes that may still be written where a path lies."""


def free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free


class Disk:
    """The file systems of a run, by a path on each, and the most that was taken of them since its start."""

    def __init__(self, cache: Path, others: tuple[Path, ...], free: Free = free_bytes) -> None:
        self._cache, self._free = cache, free
        places = {path.stat().st_dev: path for path in (*others, cache.parent)}
        self._at_first: Mapping[Path, int] = {path: free(path) for path in places.values()}
        self._most = 0

    def too_small(self) -> str | None:
        """Why a run would fill the disk, with the remedy; None where it would not."""
        cached = _bytes_below(self._cache)
        for path, free in self._at_first.items():
            needed = NEEDED_GIB - cached / GIB if path == self._cache.parent else TEMPORARY_GIB
            if free / GIB < needed:
                return (
                    f"the whole run needs {needed:.1f} GiB of disk at {path}, where {free / GIB:.1f} GiB are free: "
                    "free some, or run a part of the tests (make check)"
                )
        return None

    def pytest_runtest_logreport(self) -> None:
        taken = sum(free - self._free(path) for path, free in self._at_first.items())
        self._most = max(self._most, taken)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        over = self._most / GIB > NEEDED_GIB
        text = f"disk taken at most: {self._most / GIB:.1f} GiB of {NEEDED_GIB:.0f}"
        terminalreporter.write_line(f"{text}  OVER BUDGET" if over else text, red=over, bold=over)


def _bytes_below(folder: Path) -> int:
    if not folder.exists():
        return 0
    du = subprocess.run(["du", "-sxB1", "--", folder], capture_output=True, text=True, check=True)
    return int(du.stdout.split()[0])


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return
    disk = Disk(config.rootpath / ".cache", (Path(tempfile.gettempdir()),))
    if reason := disk.too_small():
        raise pytest.UsageError(reason)
    config.pluginmanager.register(disk, "disk")
