"""Whether the disk has room for a whole run, what the run took and what was left: a plugin, `-p tests.plugins.disk`.

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
FULL_GIB = 1.0
"""With less than that left, whatever failed may have failed for it."""

Free = Callable[[Path], int]
"""Bytes that may still be written where a path lies."""


def free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free


class Disk:
    """The file systems of a run, by a path on each; the most that was taken of them since its start, by whomever, and
    the least that one of them had left."""

    def __init__(self, cache: Path, others: tuple[Path, ...], free: Free = free_bytes) -> None:
        self._cache, self._free = cache, free
        places = {path.stat().st_dev: path for path in (*others, cache.parent)}
        self._at_first: Mapping[Path, int] = {path: free(path) for path in places.values()}
        self._most, self._least = 0, min(self._at_first.values())

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
        now = {path: self._free(path) for path in self._at_first}
        self._most = max(self._most, sum(free - now[path] for path, free in self._at_first.items()))
        self._least = min(self._least, *now.values())

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        over = "  OVER BUDGET" if self._most / GIB > NEEDED_GIB else ""
        full = "  FULL" if self._least / GIB < FULL_GIB else ""
        taken = f"disk taken at most: {self._most / GIB:.1f} GiB of {NEEDED_GIB:.0f}{over}"
        text = f"{taken}, left at least: {self._least / GIB:.1f} GiB{full}"
        terminalreporter.write_line(text, red=bool(over or full), bold=bool(over or full))


def _bytes_below(folder: Path) -> int:
    if not folder.exists():
        return 0
    argv = ["du", "-sxB1", "--", str(folder)]  # fails where a file goes meanwhile, and says how much the others are
    return int(subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split()[0])


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return
    disk = Disk(config.rootpath / ".cache", (Path(tempfile.gettempdir()),))
    if reason := disk.too_small():
        raise pytest.UsageError(reason)
    config.pluginmanager.register(disk, "disk")
