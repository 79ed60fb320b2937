"""For every test."""

import logging
import signal
import threading
from collections.abc import Iterator

import pytest
from hypothesis import settings

from netboot.logs import OURS
from tests.commands import Run, caller
from tests.plugins import unbuilt

settings.register_profile("netboot", deadline=None)  # a busy machine is no defect
settings.load_profile("netboot")


def pytest_configure(config: pytest.Config) -> None:
    """As from a terminal: a shell starts what runs in the background with SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    config.pluginmanager.register(unbuilt, "unbuilt")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A test that failed at first is a defect too: how it failed is shown, though the second try passed."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"failed at first: {report.nodeid}", red=True, bold=True)
        terminalreporter.write_line(report.longreprtext)


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """A command that runs in this process may send the log elsewhere; the next test must not hear of it."""
    root = logging.getLogger()
    levels, handlers = {name: logging.getLogger(name).level for name in ("root", *OURS)}, root.handlers[:]
    ended = threading.excepthook
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    root.handlers[:] = handlers
    threading.excepthook = ended


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The `netboot` command, which knows of no site but where the test goes."""
    monkeypatch.delenv("NETBOOT_CONFIG", raising=False)
    return caller(capsys)
