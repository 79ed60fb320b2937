"""For every test."""

import logging
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(autouse=True, scope="session")
def folders_as_they_were(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The folders that tests have in common keep their modes: how a service's account comes to its files is settled by
    these when it starts. One that a test opens is closed by the next pytest that begins, as tests of plugins begin
    some, and services beside can open no file any more. See `open_path`.
    """
    base = tmp_path_factory.getbasetemp()
    modes = {folder: folder.stat().st_mode for folder in (base, *base.parents)}
    yield
    assert {folder: folder.stat().st_mode for folder in modes} == modes


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The `netboot` command, which knows of no site but where the test goes."""
    monkeypatch.delenv("NETBOOT_CONFIG", raising=False)
    return caller(capsys)


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder of the test's own that every account may enter; what `tmp_path` is in may be entered by its owner."""
    with tempfile.TemporaryDirectory(prefix="netboot-open-") as folder:
        (path := Path(folder).resolve()).chmod(0o755)
        yield path
