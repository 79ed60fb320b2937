"""What a whole run tries once more, and what it never does."""

import subprocess
from pathlib import Path

import pytest

from tests.boot.conftest import set_aside
from tests.plugins import reruns
from tests.plugins.budgets import Budgets
from tests.plugins.reruns import may_run_again

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
LATE = {
    "deadline": "raise DeadlineError('not within 1 s')",
    "timeout": "raise TimeoutError",
    "command": "raise subprocess.TimeoutExpired('sleep', 1)",
    "waiting": "wait_for(lambda: None, 0.01)",
    "lab's command": "raise LateError('did not end within 1 s')",
}
LOST = {
    "assertion": "assert not 'lost'",
    "error": "raise OSError('lost')",
    "ended": "raise EndedError('it ended')",
    "after": "try:\n            raise TimeoutError\n        except TimeoutError:\n            assert not 'lost'",
    "because": "raise AssertionError from TimeoutError()",
}


def failing_at_first(pytester: pytest.Pytester, failures: dict[str, str]) -> None:
    """A test in each file of that name which fails so, and passes when it is tried again."""
    pytester.makeini("[pytest]")
    for path, failure in failures.items():
        file = pytester.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            "import subprocess\nfrom lab.errors import DeadlineError, EndedError, LateError\n"
            "from tests.processes import wait_for\n\n"
            "tries = []\n"
            f"\ndef test_it():\n    tries.append(1)\n    if len(tries) == 1:\n        {failure}\n"
        )


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*arguments, plugins=[reruns, Budgets()])


@pytest.mark.parametrize("folder", ["boot", "cluster", "tools/images"])
@pytest.mark.parametrize("failure", LATE.values(), ids=LATE)
def test_a_deadline_where_others_are_waited_for_is_tried_once_more(
    pytester: pytest.Pytester, folder: str, failure: str
) -> None:
    failing_at_first(pytester, {f"tests/{folder}/test_a.py": failure})
    result = run(pytester)
    result.assert_outcomes(passed=1)
    assert "failed at first: 1" in result.outlines


@pytest.mark.parametrize("folder", ["unit", "contract", "sockets", "cluster/threats", "new"])
def test_elsewhere_nothing_is_tried_twice(pytester: pytest.Pytester, folder: str) -> None:
    failing_at_first(pytester, {f"tests/{folder}/test_a.py": LATE["deadline"]})
    result = run(pytester)
    result.assert_outcomes(failed=1)
    assert "failed at first: 0" in result.outlines


@pytest.mark.parametrize("failure", LOST.values(), ids=LOST)
def test_what_is_no_deadline_is_not_tried_twice(pytester: pytest.Pytester, failure: str) -> None:
    failing_at_first(pytester, {"tests/boot/test_a.py": failure})
    result = run(pytester)
    result.assert_outcomes(failed=1)
    assert "failed at first: 0" in result.outlines


def test_a_test_that_fails_twice_fails(pytester: pytest.Pytester) -> None:
    file = pytester.path / "tests" / "boot" / "test_a.py"
    file.parent.mkdir(parents=True)
    file.write_text("def test_it():\n    raise TimeoutError\n")
    run(pytester).assert_outcomes(failed=1)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_a_run_with_more_late_tests_than_three_fails(
    pytester: pytest.Pytester, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_at_first(pytester, {f"tests/boot/test_{number}.py": LATE["deadline"] for number in range(4)})
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    plugins = ("-p", "tests.plugins.reruns", "-p", "tests.plugins.budgets")
    result = pytester.runpytest_subprocess(*plugins, *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=3, failed=1)
    assert "failed at first: 3" in result.outlines


@pytest.mark.parametrize("option", ["--reruns", "--force-reruns"])
def test_an_option_that_tries_everything_again_is_refused(
    pytester: pytest.Pytester, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    result = pytester.runpytest_subprocess("-p", "tests.plugins.reruns", option, "1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == f"ERROR: tests.plugins.reruns: {option} would count for every test"


def test_a_test_that_says_of_itself_that_it_is_flaky_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]")
    pytester.makepyfile(test_a="import pytest\n\n@pytest.mark.flaky(reruns=5)\ndef test_it():\n    pass\n")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == "ERROR: test_a.py::test_it is marked as flaky: mend it"


def test_folders_with_a_rule_are_there() -> None:
    assert [name for name in (*reruns.ALLOWED, *reruns.NEVER) if not (ROOT / name).is_dir()] == []
    assert not may_run_again("tests/unit/test_reruns.py::test_a[tests/boot/x]")
    assert not may_run_again("tests/bootstrap/test_a.py::test_a")


@pytest.mark.parametrize(("target", "again"), [("test", True), ("unit", False)])
def test_make_test_follows_these_rules_and_a_quick_check_tries_nothing_again(target: str, again: bool) -> None:
    argv = ["make", "--no-print-directory", "-n", target]
    commands = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    (command,) = [line for line in commands if " -m pytest " in line]
    assert (" -p tests.plugins.reruns" in command) is again
    assert "--reruns" not in command


def test_a_second_try_on_machines_finds_an_empty_place_and_the_first_one_s_logs_stay(tmp_path: Path) -> None:
    place = tmp_path / "test_it"
    set_aside(place).mkdir()
    (place / "node-1.console.log").write_text("it hangs")
    assert not set_aside(place).exists()
    assert (tmp_path / "test_it.first/node-1.console.log").read_text() == "it hangs"
