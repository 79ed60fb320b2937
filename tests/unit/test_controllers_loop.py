"""The controllers' process: one loop's failure does not end the other."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from netboot.clock import SystemClock
from netboot.controllers import loop
from netboot.controllers.loop import Beats, Controllers


class Faulty:
    """Publisher or projection: fails so many times, then works; `then` is called whenever it worked."""

    progress = property(lambda self: self)

    def __init__(self, failures: int, then: Callable[[], object] = lambda: None) -> None:
        self.failures, self.then, self.worked = failures, then, 0

    def step(self, going: Callable[[], None] = lambda: None, *, now: bool = False) -> bool:
        going()
        if self.failures:
            self.failures -= 1
            raise LookupError("nobody foresaw this")
        self.worked += 1
        self.then()
        return now

    def status(self, *_: object) -> str:
        return "a status"

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


def run(publisher: Faulty, projection: Faulty) -> list[str]:
    """Who said something of itself, until SIGTERM."""
    said: list[str] = []
    ready: list[bool] = []
    controllers = Controllers(
        cast(Any, publisher), cast(Any, projection), lambda name, _: said.append(name), SystemClock()
    )
    controllers.run(lambda: ready.append(True), Beats(lambda: None, lambda: None))
    assert ready == [True]
    return said


def stop_if(condition: Callable[[], bool]) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), signal.SIGTERM) if condition() else None


def test_a_publisher_that_fails_ends_neither_the_projection_nor_itself(caplog: pytest.LogCaptureFixture) -> None:
    publisher = Faulty(3)
    projection = Faulty(0, stop_if(lambda: publisher.worked > 0))
    assert set(run(publisher, projection)) == {"projection", "publisher"}
    assert projection.worked > 0
    assert "the publisher failed; it is tried again" in caplog.text


def test_a_projection_that_fails_ends_neither_the_publisher_nor_itself(caplog: pytest.LogCaptureFixture) -> None:
    publisher = Faulty(0)
    projection = Faulty(3, stop_if(lambda: publisher.worked > 1))
    assert set(run(publisher, projection)) == {"projection", "publisher"}
    assert "the projection failed; it is tried again" in caplog.text
