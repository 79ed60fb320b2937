"""Which tests of a whole run are tried once more: a plugin, `-p tests.plugins.reruns` (docs/decisions/012).

Only those that stand on real machines, tools and clusters, only after a deadline, and not often: a loss that happens
in one run of three must not pass because the second try was lucky.
"""

import subprocess

import pytest

from lab.errors import DeadlineError

ALLOWED = ("tests/boot", "tests/cluster", "tests/tools")
"""Folders of tests that wait for what others do. Whatever is in no such folder is never tried twice."""
NEVER = ("tests/cluster/threats",)
"""Of these, where safety is what is tested."""
DEADLINES = (DeadlineError, TimeoutError, subprocess.TimeoutExpired)
"""What a test ends with when something did not happen in time. An assertion is none, whatever led to it."""
MOST = 3
"""In a run, over all workers: what fails after that fails the run."""


def may_run_again(nodeid: str) -> bool:
    path = nodeid.partition("::")[0]
    return _in(path, ALLOWED) and not _in(path, NEVER)


def _in(path: str, folders: tuple[str, ...]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _too_late(error: BaseException | None) -> bool:
    """Without it, an assertion would count that was made while a deadline's error was handled."""
    return isinstance(error, DEADLINES)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    for option in ("reruns", "force_reruns"):
        if getattr(config.option, option) is not None:
            raise pytest.UsageError(f"tests.plugins.reruns: --{option.replace('_', '-')} would count for every test")
    config.option.max_suite_reruns = MOST


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("flaky"):
            raise pytest.UsageError(f"{item.nodeid} is marked as flaky: mend it")
        if may_run_again(item.nodeid):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=list(DEADLINES), condition=_too_late))
