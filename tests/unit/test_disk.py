"""A whole run of the tests is refused where the disk has no room for it, and says what it took and what was left."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.plugins.disk import GIB, NEEDED_GIB, TEMPORARY_GIB, Disk

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
OTHER = Path("/proc")
"""On another file system than any file of a test."""


def free_of(*gib: float) -> Callable[[Path], int]:
    """What each question in turn is answered with."""
    answers = iter(gib)
    return lambda _: int(next(answers) * GIB)


def test_a_disk_with_just_enough_room_is_taken(tmp_path: Path) -> None:
    assert Disk(tmp_path / ".cache", (tmp_path,), free_of(NEEDED_GIB)).too_small() is None


def test_a_disk_that_would_fill_is_refused_with_the_remedy(tmp_path: Path) -> None:
    assert Disk(tmp_path / ".cache", (tmp_path,), free_of(NEEDED_GIB - 0.1)).too_small() == (
        f"the whole run needs {NEEDED_GIB:.1f} GiB of disk at {tmp_path}, where {NEEDED_GIB - 0.1:.1f} GiB are free: "
        "free some, or run a part of the tests (make check)"
    )


def test_what_a_run_before_has_cached_is_not_needed_again(tmp_path: Path) -> None:
    cache = tmp_path / ".cache"
    cache.mkdir()
    (cache / "product").write_bytes(bytes(GIB // 16))
    assert Disk(cache, (), free_of(NEEDED_GIB - 1 / 16)).too_small() is None


def test_every_file_system_of_a_run_is_looked_at(tmp_path: Path) -> None:
    assert Disk(tmp_path / ".cache", (OTHER,), free_of(TEMPORARY_GIB, NEEDED_GIB)).too_small() is None
    disk = Disk(tmp_path / ".cache", (OTHER,), free_of(TEMPORARY_GIB - 1, NEEDED_GIB))
    assert disk.too_small() == (
        f"the whole run needs {TEMPORARY_GIB:.1f} GiB of disk at /proc, where {TEMPORARY_GIB - 1:.1f} GiB are free: "
        "free some, or run a part of the tests (make check)"
    )


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ((30, 21.5, 25), f"disk taken at most: 8.5 GiB of {NEEDED_GIB:.0f}, left at least: 21.5 GiB"),
        ((30, 26, 5), f"disk taken at most: 25.0 GiB of {NEEDED_GIB:.0f}  OVER BUDGET, left at least: 5.0 GiB"),
        ((20, 0.9, 20), f"disk taken at most: 19.1 GiB of {NEEDED_GIB:.0f}, left at least: 0.9 GiB  FULL"),
        ((30, 31, 32), f"disk taken at most: 0.0 GiB of {NEEDED_GIB:.0f}, left at least: 30.0 GiB"),
    ],
)
def test_a_run_ends_with_the_most_that_it_took(pytester: pytest.Pytester, left: tuple[float, ...], said: str) -> None:
    pytester.makeini("[pytest]")
    pytester.makepyfile("def test_it():\n    pass\n")  # three reports: set-up, call, teardown
    first, *later = left
    disk = Disk(pytester.path / ".cache", (), free_of(first, first, *later))
    result = pytester.runpytest_inprocess(plugins=[disk])
    assert said in result.outlines


def test_a_run_is_refused_before_its_first_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makeini("[pytest]")
    pytester.makepyfile("def test_it():\n    pass\n")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=GIB))
    monkeypatch.setattr(tempfile, "tempdir", str(pytester.path))
    result = pytester.runpytest_inprocess("-p", "tests.plugins.disk")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == (
        f"ERROR: the whole run needs {NEEDED_GIB:.1f} GiB of disk at {pytester.path}, where 1.0 GiB are free: "
        "free some, or run a part of the tests (make check)"
    )


@pytest.mark.parametrize(("target", "looks"), [("test", True), ("unit", False)])
def test_make_test_looks_at_the_disk_and_a_quick_check_does_not(target: str, looks: bool) -> None:
    argv = ["make", "--no-print-directory", "-n", target]
    commands = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    (command,) = [line for line in commands if " -m pytest " in line]
    assert (" -p tests.plugins.disk" in command) is looks
