"""How long whoever asks again waits, by a clock of the test's own."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from lab import service
from lab.errors import DeadlineError
from lab.polling import pause_after
from lab.site import Site
from tests import processes


class Clock:
    """Time passes by what is asked and by what is waited; the waits are kept."""

    def __init__(self) -> None:
        self.now, self.waits = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.waits.append(round(seconds, 6))
        self.now += seconds

    def question(self, seconds: float) -> bool:
        """One that takes so long, and whose answer is no."""
        self.now += seconds
        return False


@pytest.mark.parametrize(
    ("took", "least", "pause"),
    [(0.0, 0.02, 0.02), (0.001, 0.02, 0.02), (0.3, 0.02, 0.9), (30.0, 0.2, 2.0), (0.1, 5.0, 5.0)],
)
def test_a_question_that_takes_long_is_asked_less_often(took: float, least: float, pause: float) -> None:
    assert pause_after(took, least) == pytest.approx(pause)


@pytest.mark.parametrize(("took", "waits"), [(0.3, [0.9] * 4), (0.0, [0.02] * 201), (4.0, [2.0])])
def test_a_test_that_waits_asks_by_that_rule(monkeypatch: pytest.MonkeyPatch, took: float, waits: list[float]) -> None:
    clock = Clock()
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=clock.monotonic, sleep=clock.wait))
    with pytest.raises(DeadlineError, match="did not happen within 4"):
        processes.wait_for(lambda: clock.question(took), 4.01)
    assert clock.waits == waits


def test_a_service_of_the_lab_is_asked_by_that_rule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clock = Clock()
    monkeypatch.setattr(service, "monotonic", clock.monotonic)
    monkeypatch.setattr(service, "threading", SimpleNamespace(Event=lambda: SimpleNamespace(wait=clock.wait)))
    asked = service.Service(Site(tmp_path, "http://192.0.2.1", "http://127.0.0.1"), tmp_path)
    with pytest.raises(DeadlineError, match="not within 4 s: it is there"):
        asked.wait_until("it is there", lambda: clock.question(0.3), 4)
    assert clock.waits == [0.9] * 4
