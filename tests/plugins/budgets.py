"""What the tests may cost and what they took, at the end of a run: a plugin, `-p tests.plugins.budgets`.

A folder's time is that of its tests from the first fixture to the last, those of other workers beside it included:
three workers spend three minutes of tests in one minute of the clock. The whole run's time is the clock's.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from time import monotonic

import pytest
from _pytest.terminal import TerminalReporter

BUDGET_MINUTES: Mapping[str, float] = {
    "tests/boot": 62,
    "tests/browser": 2,
    "tests/cluster": 22,
    "tests/contract": 2,
    "tests/sockets": 21,
    "tests/tools": 50,
    "tests/unit": 14,
}
"""Of each folder of tests. Whoever adds tests that do not fit says so here."""
WHOLE_MINUTES = 75.0
"""Of `make test`, by the clock."""
WARN_AT = 1.10
"""Of a budget."""
SLOWEST = 20


class Budgets:
    """Seconds by folder and by test, from the reports of each test's setup, call and teardown (all tries)."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._started = clock, clock()
        self._by_folder: defaultdict[str, float] = defaultdict(float)
        self._by_test: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = "/".join(report.nodeid.partition("::")[0].split("/")[:2])
        self._by_folder[folder] += report.duration
        self._by_test[report.nodeid] += report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        terminalreporter.section(f"slowest {SLOWEST} tests (setup, call, teardown; all tries)")
        slowest = sorted(self._by_test.items(), key=lambda item: -item[1])[:SLOWEST]
        for nodeid, seconds in slowest:
            terminalreporter.write_line(f"{seconds:8.1f} s  {nodeid}")
        terminalreporter.section("minutes taken of minutes budgeted")
        for folder, seconds in sorted(self._by_folder.items()):
            _line(terminalreporter, folder, seconds, BUDGET_MINUTES.get(folder))
        _line(terminalreporter, "whole run", self._clock() - self._started, WHOLE_MINUTES)
        first_failures = len(terminalreporter.getreports("rerun"))
        terminalreporter.write_line(f"failed at first: {first_failures}", red=first_failures > 0)


def _line(terminalreporter: TerminalReporter, name: str, seconds: float, budget: float | None) -> None:
    minutes = seconds / 60
    if budget is None:
        terminalreporter.write_line(
            f"{name:<16}{minutes:6.1f} of    ?  no budget in tests/plugins/budgets.py", red=True
        )
        return
    over = minutes >= budget * WARN_AT
    text = f"{name:<16}{minutes:6.1f} of {budget:4.0f}  {minutes / budget:5.0%}{'  OVER BUDGET' if over else ''}"
    terminalreporter.write_line(text, red=over, bold=over)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Budgets(), "budgets")
