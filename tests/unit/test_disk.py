"""A whole run of the tests is refused where the disk has no room for it, and says how much it took."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.plugins.disk import GIB, NEEDED_GIB, TEMPORARY_GIB, Disk

pytest_plugins = ["pytester"]


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
    assert Disk(tmp_path / ".cache", (Path("/dev/shm"),), free_of(TEMPORARY_GIB, NEEDED_GIB)).too_small() is None
    disk = Disk(tmp_path / ".cache", (Path("/dev/shm"),), free_of(TEMPORARY_GIB - 1, NEEDED_GIB))
    assert disk.too_small() == (
        f"the whole run needs {TEMPORARY_GIB:.1f} GiB of disk at /dev/shm, where {TEMPORARY_GIB - 1:.1f} GiB are free: "
        "free some, or run a part of the tests (make check)"
    )


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ((30, 21.5, 25), f"disk taken at most: 8.5 GiB of {NEEDED_GIB:.0f}"),
        (
            (30, 26, 29.5 - NEEDED_GIB),
            f"disk taken at most: {NEEDED_GIB + 0.5:.1f} GiB of {NEEDED_GIB:.0f}  OVER BUDGET",
        ),
        ((30, 31, 32), f"disk taken at most: 0.0 GiB of {NEEDED_GIB:.0f}"),
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
    result = pytester.runpytest_inprocess("-p", "tests.plugins.disk")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0].startswith(f"ERROR: the whole run needs {NEEDED_GIB:.1f} GiB of disk at ")
