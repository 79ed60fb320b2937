"""The controllers' process: one loop's failure does not end the other."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from netboot.clock import SystemClock
from netboot.controllers import loop
from netboot.controllers.loop import Beats, Controllers
from netboot.status.controllers import LoopStatus


class Faulty:
    """Publisher or projection: fails so many times, then works; `then` is called whenever it worked."""

    progress = property(lambda self: self)

    def __init__(self, failures: int, then: Callable[[], object] = lambda: None) -> None:
        self.failures, self.then, self.worked, self.mute = failures, then, 0, False

    def step(self, going: Callable[[], None] = lambda: None, *, now: bool = False) -> bool:
        going()
        if self.failures:
            self.failures -= 1
            raise LookupError("nobody foresaw this")
        self.worked += 1
        self.then()
        return now

    def status(self, *_: object) -> LoopStatus:
        if self.mute:
            raise LookupError("nobody foresaw this either")
        return LoopStatus(at_ms=1)

    def protect(self) -> None:
        """Nothing to protect."""

    def finish(self) -> None:
        """Nothing is left."""


@pytest.fixture(autouse=True)
def _signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(loop, "REST_SECONDS", 0.0)
    monkeypatch.setattr(os, "sched_setscheduler", lambda *_: None)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run(
    publisher: Faulty, projection: Faulty, lifecycle: Faulty | None = None, rollouts: Faulty | None = None
) -> list[tuple[str, str]]:
    """What each said of itself, until SIGTERM: its name and its problem."""
    said: list[tuple[str, str]] = []
    ready: list[bool] = []
    controllers = Controllers(
        cast(Any, publisher),
        cast(Any, projection),
        cast(Any, lifecycle or Faulty(0)),
        cast(Any, rollouts or Faulty(0)),
        lambda name, status: said.append((name, status.problem)),
        SystemClock(),
    )
    controllers.run(lambda: ready.append(True), Beats(*[lambda: None] * 4))
    assert ready == [True]
    return said


def stop_if(condition: Callable[[], bool]) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), signal.SIGTERM) if condition() else None


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


DEFECT = "a defect; see the log"


def test_a_publisher_that_fails_ends_neither_the_projection_nor_itself(caplog: pytest.LogCaptureFixture) -> None:
    publisher = Faulty(3)
    projection = Faulty(0, stop_if(lambda: publisher.worked > 1))
    said = [problem for name, problem in run(publisher, projection) if name == "publisher"]
    assert said[:4] == [DEFECT, DEFECT, DEFECT, ""], "each time at once, and no longer than it lasts"
    assert projection.worked > 0
    assert lines(caplog) == [
        "the publisher failed; it is tried again: LookupError('nobody foresaw this')",
        "the publisher works again",
    ]
    assert caplog.records[0].exc_info, "where it was, stands beside"


def test_a_projection_that_fails_ends_neither_the_publisher_nor_itself(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "STATUS_SECONDS", 3600.0)  # each begins with a word; another would be the clock's
    publisher = Faulty(0)
    projection = Faulty(3, stop_if(lambda: publisher.worked > 1))
    said = [problem for name, problem in run(publisher, projection) if name == "projection"]
    assert said == ["", DEFECT, "", DEFECT, "", DEFECT, ""], "as it begins, then why it does not go on"
    assert lines(caplog) == [
        "the projection failed; it is tried again: LookupError('nobody foresaw this')",
        "the projection works again",
    ]


def test_a_lifecycle_that_fails_ends_no_other_loop_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    lifecycle = Faulty(3)
    said = run(Faulty(0), Faulty(0, stop_if(lambda: lifecycle.worked > 1)), lifecycle)
    assert [problem for name, problem in said if name == "lifecycle"][:4] == ["", DEFECT, DEFECT, DEFECT]
    assert "the lifecycle failed; it is tried again" in caplog.text


def test_rollouts_that_fail_end_no_other_loop_and_go_on(caplog: pytest.LogCaptureFixture) -> None:
    rollouts = Faulty(3)
    said = run(Faulty(0), Faulty(0, stop_if(lambda: rollouts.worked > 0)), rollouts=rollouts)
    assert [problem for name, problem in said if name == "rollouts"][:3] == [DEFECT, DEFECT, DEFECT]
    assert "the rollouts failed; it is tried again" in caplog.text


def test_a_publisher_that_cannot_even_say_how_it_is_is_said_to_have_met_a_defect() -> None:
    def fall_silent() -> None:
        publisher.mute = ("publisher", "") in said

    said: list[tuple[str, str]] = []
    publisher = Faulty(0, fall_silent)

    def say(name: str, status: LoopStatus) -> None:
        said.append((name, status.problem))
        if ("publisher", DEFECT) in said:
            os.kill(os.getpid(), signal.SIGTERM)

    projection, lifecycle, rollouts = (cast(Any, Faulty(0)) for _ in range(3))
    controllers = Controllers(cast(Any, publisher), projection, lifecycle, rollouts, say, SystemClock())
    controllers.run(lambda: None, Beats(*[lambda: None] * 4))
    of_publisher = [problem for name, problem in said if name == "publisher"]
    assert of_publisher[:2] == ["", DEFECT]


def test_a_publisher_that_never_could_say_anything_leaves_that_to_be_said() -> None:
    publisher = Faulty(1)
    publisher.mute = True
    said = run(publisher, Faulty(0, stop_if(lambda: publisher.worked > 0)))
    assert [name for name, _ in said if name == "publisher"] == []
