"""The end of a whole run: what each folder took of its budget, the slowest tests, how many failed at first."""

from pathlib import Path

import pytest

from tests.plugins.budgets import BUDGET_MINUTES, WHOLE_MINUTES, Budgets

pytest_plugins = ["pytester"]
TESTS = Path(__file__).parents[1]
TIMED = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.duration = item.function.seconds if call.when == "call" else 0.5
    return report
"""


def timed(pytester: pytest.Pytester, seconds: dict[str, float], seconds_in_all: float = 60.0) -> list[str]:
    """A run of one test a file, each of that many seconds by its report; the lines it ends with."""
    pytester.makeini("[pytest]")
    pytester.makeconftest(TIMED)
    for path, each in seconds.items():
        file = pytester.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def test_it():\n    pass\n\ntest_it.seconds = {each}\n")
    clock = iter((100.0, 100.0 + seconds_in_all))
    result = pytester.runpytest_inprocess(plugins=[Budgets(clock.__next__)])
    assert result.ret == pytest.ExitCode.OK, result.outlines
    return [line for line in result.outlines if line]


def test_every_folder_has_a_budget_and_no_budget_is_without_its_folder() -> None:
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")}
    assert {f"tests/{folder}" for folder in folders} == set(BUDGET_MINUTES)
    assert sum(BUDGET_MINUTES.values()) / 3 <= WHOLE_MINUTES * 0.8, "three workers; a busy machine takes longer"


def test_what_each_folder_took_beside_its_budget(pytester: pytest.Pytester) -> None:
    unit, tools = BUDGET_MINUTES["tests/unit"], BUDGET_MINUTES["tests/tools"]
    lines = timed(
        pytester,
        {
            "tests/unit/test_a.py": unit * 30 - 1,
            "tests/unit/deep/test_b.py": unit * 35.88 - 1,
            "tests/tools/test_c.py": tools * 66,
            "tests/new/test_d.py": 59,
        },
        seconds_in_all=WHOLE_MINUTES * 66 + 1,
    )
    begin = next(index for index, line in enumerate(lines) if " minutes taken of minutes budgeted " in line)
    assert lines[begin + 1 : begin + 4] == [
        "tests/new          1.0 of    ?  no budget in tests/plugins/budgets.py",
        f"tests/tools     {tools * 1.1:6.1f} of {tools:4.0f}   110%  OVER BUDGET",
        f"tests/unit      {unit * 1.098:6.1f} of {unit:4.0f}   110%",
    ]
    assert lines[begin + 4] == "whole run         82.5 of   75   110%  OVER BUDGET"
    assert lines[begin + 5] == "failed at first: 0"
    assert lines[begin + 6].startswith("====") and " 4 passed in " in lines[begin + 6]


def test_the_slowest_twenty_are_listed_with_all_their_phases(pytester: pytest.Pytester) -> None:
    lines = timed(pytester, {f"tests/unit/test_{number:02}.py": number for number in range(30)})
    begin = next(index for index, line in enumerate(lines) if " slowest 20 tests " in line)
    assert lines[begin + 1 : begin + 21] == [
        f"    {number + 1:4.1f} s  tests/unit/test_{number:02}.py::test_it" for number in range(29, 9, -1)
    ]
    assert " minutes taken of minutes budgeted " in lines[begin + 21]


def test_a_test_that_failed_at_first_is_counted_and_its_time_too(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]")
    pytester.makepyfile(
        test_flaky="tries = []\n\ndef test_it():\n    tries.append(1)\n    assert len(tries) > 1\n",
        test_sound="def test_it():\n    pass\n",
    )
    result = pytester.runpytest_inprocess("--reruns", "1", plugins=[Budgets()])
    assert result.ret == pytest.ExitCode.OK
    assert "failed at first: 1" in result.outlines
