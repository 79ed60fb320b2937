"""The process `pause`: asks outside, again and again, whether what acts by itself may begin anything.

What was said last counts for a while; whatever keeps it from being told is a no.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.ports import Clock
from netboot.logs import Trouble
from netboot.machines.maintenance import Signal
from netboot.status import DEFECT
from netboot.status.pause import PauseStatus

log = logging.getLogger(__name__)

STOP_SECONDS = 2.0


class Asks(Protocol):
    """One question to somebody outside."""

    @property
    def where(self) -> str:
        """Whom it asks."""
        ...

    def ask(self) -> Signal:
        """What is said now.

        Raises:
            CannotTellError: it cannot be asked, answers late, or something else.
        """
        ...


class PauseController:
    """Asks every so many seconds, in a thread. An answer counts until the next one, and for `lasts_seconds` at most:
    somebody who can no longer be asked, or a question that hangs, leaves no yes behind."""

    def __init__(
        self,
        asks: Asks,
        every_seconds: float,
        lasts_seconds: float,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asks, self._every, self._lasts = asks, every_seconds, lasts_seconds
        self._clock, self._monotonic = clock, monotonic
        self._lock = threading.Lock()
        self._answer: tuple[float, Signal] | None = None
        self._problem = "it has not been asked yet"
        self._asked = self._failed = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="pause", daemon=True)
        self._trouble = Trouble(
            log, f"whether {asks.where} lets anything begin cannot be told", f"{asks.where} can be asked again"
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(STOP_SECONDS)

    def step(self) -> None:
        """Ask once."""
        answer, problem = None, ""
        try:
            answer = self._asks.ask()
        except CannotTellError as error:
            problem = str(error)
            self._trouble.note(problem)
        except Exception as error:  # noqa: BLE001 - said with its traceback; it must leave no yes, nor end the thread
            problem = DEFECT
            self._trouble.note(problem, error)
        else:
            self._trouble.note(None)
        with self._lock:
            before = self._answer[1] if self._answer is not None else None
            self._answer = (self._monotonic(), answer) if answer is not None else None
            self._problem, self._asked, self._failed = problem, self._asked + 1, self._failed + (answer is None)
        if answer is not None and answer != before:
            log.info("%s", answer.reason)

    def status(self) -> PauseStatus:
        """For `/readyz`, metrics, and whoever wants to begin something."""
        with self._lock:
            answer, problem, asked, failed = self._answer, self._problem, self._asked, self._failed
        age = self._monotonic() - answer[0] if answer is not None else None
        if age is not None and age > self._lasts:
            answer, age, problem = None, None, f"it has not answered for {self._lasts:g} s"
        said = answer[1] if answer is not None else Signal(may=False, reason=self._untold(problem))
        return PauseStatus(
            at_ms=self._clock.now_ms(),
            ok=answer is not None,
            message=said.reason,
            remedy="see `pause` of netboot.yaml, and whom it names: nothing that acts by itself begins until then",
            may=said.may,
            reason=said.reason,
            age_seconds=age,
            asked=asked,
            failed=failed,
        )

    def _untold(self, problem: str) -> str:
        return f"whether {self._asks.where} lets anything begin cannot be told: {problem}"

    def _work(self) -> None:
        while not self._stopping.is_set():
            self.step()
            self._stopping.wait(self._every)
