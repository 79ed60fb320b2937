"""A test that hangs fails, and those after it run."""

import pytest

from tests.plugins import hangs
from tests.plugins.hangs import limit

pytest_plugins = ["pytester"]
HANGING = """
import threading
import pytest

@pytest.fixture
def wired(request):
    if "before" in request.node.name:
        threading.Event().wait()
    yield
    if "after" in request.node.name:
        threading.Event().wait()

def test_before(wired): pass
def test_itself(): threading.Event().wait()
def test_after(wired): pass
def test_another(): pass
"""


def test_what_hangs_fails_and_is_shown_where_and_the_rest_runs(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hangs, "SECONDS", 2.0)  # the others pass in that, on a busy machine too
    pytester.makepyfile(test_it=HANGING)
    result = pytester.runpytest_inprocess(plugins=[hangs])
    result.assert_outcomes(passed=2, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        ["*def test_itself(): threading.Event().wait()*", "*Timeout (>2.0s) from pytest-timeout*"]
    )


@pytest.mark.parametrize("folder", ["boot", "cluster", "cluster/threats", "tools/images"])
def test_what_waits_for_machines_and_builds_has_longer(folder: str) -> None:
    assert limit(f"tests/{folder}/test_a.py::test_it") == hangs.WAITING_SECONDS


@pytest.mark.parametrize("folder", ["unit", "contract", "sockets", "browser", "new"])
def test_what_waits_for_nobody_has_not(folder: str) -> None:
    assert limit(f"tests/{folder}/test_a.py::test_it") == hangs.SECONDS
