"""What the lab makes of a service with a defect, and of a command that does not end."""

from argparse import Namespace
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from lab import site as lab_site
from lab.demo.progress import LOG_LINES, Demo, explain_failure
from lab.errors import DeadlineError, DefectError, LabError, LateError
from lab.service import Service, service
from lab.site import Site, run_netboot

TRACEBACK = "[ 1.0] time=2026-11-29T05:00:00Z level=error Traceback (most recent call last)"


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of services that do nothing."""
    monkeypatch.setattr(Service, "start", lambda _: None)
    monkeypatch.setattr(Service, "stop", lambda _: None)
    return tmp_path


def _site(folder: Path) -> Site:
    return Site(folder, "http://127.0.0.1:1", "http://127.0.0.1:2")


def test_a_service_with_a_traceback_in_its_log_has_a_defect(logs: Path) -> None:
    (logs / "service-1.log").write_text("[ 0.1] well\n")
    with service(_site(logs), logs):
        pass
    with pytest.raises(DefectError) as raised, service(_site(logs), logs):
        (logs / "service-2.log").write_text(f"[ 0.1] well\n{TRACEBACK}\n[ 1.1] more\n")
    assert str(raised.value) == f"the service met what nobody foresaw, see {logs}/service-2.log:\n{TRACEBACK}"


def test_what_fails_before_is_what_is_said(logs: Path) -> None:
    (logs / "service-1.log").write_text(TRACEBACK)
    with pytest.raises(LabError, match=r"^it did not boot$"), service(_site(logs), logs):
        raise LabError("it did not boot")


@pytest.mark.parametrize("begin", [True, False])
def test_a_service_may_be_started_later(logs: Path, monkeypatch: pytest.MonkeyPatch, begin: bool) -> None:
    done: list[str] = []

    def note(what: str) -> Callable[[Service], None]:
        return lambda _: done.append(what)

    for what in ("start", "stop"):
        monkeypatch.setattr(Service, what, note(what))
    with service(_site(logs), logs, begin=begin):
        assert done == (["start"] if begin else [])
    assert done[-1] == "stop"


def test_a_command_that_does_not_end_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_site, "COMMAND_SECONDS", 0.001)
    with pytest.raises(LateError, match=r"^netboot --version: did not end within 0\.001 s$"):
        run_netboot(["--version"])


@pytest.mark.parametrize("late", [True, False])
def test_a_demo_that_failed_ends_with_why(tmp_path: Path, late: bool) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "service-1.log").write_text("".join(f"line {number}\n" for number in range(LOG_LINES + 2)))
    said = StringIO()
    demo = Demo(Namespace(), tmp_path, Console(file=said, width=200), 0.0, phase="waiting")
    explain_failure(demo, DeadlineError("not within 9 s") if late else LabError("it is [red]"))
    busy = "on a busy machine everything takes longer; try again when it is idle\n"
    assert said.getvalue() == (
        "\n"
        f"the service's log ends ({tmp_path}/logs/service-1.log):\n"
        + "".join(f"line {number}\n" for number in range(2, LOG_LINES + 2))
        + f"error: while waiting: {'not within 9 s' if late else 'it is [red]'}\n"
        + (busy if late else "")
        + f"logs of everything: {tmp_path}\n"
    )
