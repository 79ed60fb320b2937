"""The supervisor's loop. Single-threaded, one `select`: signals, and what processes write to their pipes, wake it."""

import logging
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Literal

from netboot.supervise import orphans
from netboot.supervise.process import Definition, Process
from netboot.supervise.rolling import Rolling

log = logging.getLogger(__name__)

STAGE_SECONDS = 40.0
"""How long one stage of a graceful stop may take before what is left is killed."""
HURRY_SECONDS = 2.0
HURRY_AFTER = 0.2
"""Seconds after the first signal from which on another one means haste."""
LOOK_SECONDS = 0.5
SLEPT_SECONDS = 3.0
"""Who comes round this late has been asleep, with the whole machine perhaps: nobody is blamed for that silence."""


class Supervisor:
    """Runs processes until SIGTERM or SIGINT. `report` hears of every change, `once_ready` when first all are ready.

    `beat` is called every time that the loop goes round, at least twice a second; `reload` with SIGHUP: whether what
    processes are told at their start has changed, so that they are to be started again. None of them may block.
    """

    def __init__(
        self,
        command: Sequence[str],
        definitions: Sequence[Definition],
        *,
        environment: dict[str, str],
        report: Callable[[Literal["running", "stopping"], Sequence[Process]], None] = lambda _state, _processes: None,
        once_ready: Callable[[], None] = lambda: None,
        beat: Callable[[], None] = lambda: None,
        reload: Callable[[], bool] = lambda: False,
    ) -> None:
        self._command, self._environment = list(command), environment
        self._processes = [Process(definition, definition.listener, start_at=0.0) for definition in definitions]
        self._report, self._once_ready, self._beat, self._reload = report, once_ready, beat, reload
        self._rolling = Rolling()
        self._selector = selectors.DefaultSelector()
        self._signals: list[int] = []
        self._stage: int | None = None
        """The stage that is being stopped; None: running."""
        self._asked = 0.0
        self._hurry = False
        self._deadline = float("inf")
        self._announced = False
        self._looked = time.monotonic()

    def run(self) -> None:
        """Until everything has ended after a SIGTERM or SIGINT; nothing is left running, whatever is raised."""
        with self._wakeups():
            try:
                while self._stage is None or self._running():
                    self._start_due()
                    for key, _ in self._selector.select(self._timeout()):
                        key.data()
                    self._heed_signals()
                    self._reap()
                    self._judge()
                    if self._stage is None:
                        self._rolling.step()
                    self._advance()
                    self._beat()
            finally:
                self._kill(self._running())

    def _running(self) -> list[Process]:
        return [process for process in self._processes if process.popen is not None]

    def _timeout(self) -> float:
        due = [process.start_at for process in self._processes if process.start_at is not None and self._stage is None]
        return max(0.0, min([*due, self._deadline, time.monotonic() + LOOK_SECONDS]) - time.monotonic())

    # -- starting, and dying ------------------------------------------------------------------------------------------

    def _start_due(self) -> None:
        now = time.monotonic()
        for process in self._processes:
            if self._stage is None and process.start_at is not None and process.start_at <= now:
                try:
                    process.start(self._command, self._environment)
                    self._listen_to(process)
                except OSError as error:
                    if process.popen is not None:  # it runs, half begun: the next start would forget it
                        self._kill([process])
                    process.postpone(f"cannot be started: {error}")
                self._tell()

    def _listen_to(self, process: Process) -> None:
        assert process.pipe is not None
        self._selector.register(process.pipe, selectors.EVENT_READ, lambda: self._heard(process))

    def _heard(self, process: Process) -> None:
        assert process.pipe is not None
        data = process.pipe.read(65536)
        if not data:
            self._close_pipe(process)
            return
        before = process.pulse.ready
        process.pulse.hear(data, time.monotonic())
        if before or not process.pulse.ready:
            return
        log.info("%s is ready", process.definition.name)
        self._tell()
        if not self._announced and all(each.ready for each in self._processes):
            self._announced = True
            self._once_ready()

    def _close_pipe(self, process: Process) -> None:
        if process.pipe is not None:
            with suppress(KeyError):  # it was begun, and something failed before it was listened to
                self._selector.unregister(process.pipe)
            process.pipe.close()
            process.pipe = None

    def _reap(self) -> None:
        for process in self._running():
            told = self._rolling.is_told(process)
            if not process.reap():
                continue
            self._close_pipe(process)
            if self._stage is None and told:
                process.start_at = time.monotonic()
            elif self._stage is None:
                process.postpone(f"ended: {process.last_exit}")
            else:
                log.info("%s ended: %s", process.definition.name, process.last_exit)
            self._tell()
        if os.getpid() == 1:
            orphans.reap([process.popen.pid for process in self._running() if process.popen is not None])

    def _judge(self) -> None:
        """See who has fallen silent. What is in the pipes has been read: a supervisor that slept hears first."""
        now = time.monotonic()
        slept, self._looked = now - self._looked > SLEPT_SECONDS, now
        for process in self._running() if self._stage is None else ():
            if slept:
                process.pulse.excuse(now)
            if process.judge(now):
                self._tell()

    # -- stopping -----------------------------------------------------------------------------------------------------

    def _heed_signals(self) -> None:
        taken, self._signals = self._signals, []
        for number in taken:
            if number == signal.SIGHUP:
                log.info("SIGHUP: reading configuration and inventory again")
                if self._reload() and self._stage is None:
                    self._rolling.begin(self._processes)
                self._tell()
                for process in self._processes:
                    if process.definition.reload:
                        process.signal(signal.SIGHUP)
            elif number in (signal.SIGTERM, signal.SIGINT):
                self._stop(signal.Signals(number).name)

    def _stop(self, name: str) -> None:
        if self._stage is not None:
            if time.monotonic() - self._asked < HURRY_AFTER:
                return  # `timeout`, a shell and a terminal may each send the same one
            log.warning("%s again: hurrying", name)
            self._hurry = True
            self._deadline = time.monotonic() + HURRY_SECONDS
            for process in self._running():
                process.signal(signal.SIGTERM)
            return
        log.info("%s: stopping; requests in flight are finished (send it again to hurry)", name)
        self._stage, self._asked = -1, time.monotonic()
        for process in self._processes:
            process.start_at = None
            process.close_listener()
        self._tell()

    def _advance(self) -> None:
        """Begin the next stage when the one before has ended; kill what does not end in time."""
        if self._stage is None:
            return
        if time.monotonic() >= self._deadline:
            late = [process for process in self._running() if self._hurry or process.definition.stage <= self._stage]
            log.error("killed, for not ending in time: %s", ", ".join(process.definition.name for process in late))
            self._kill(late)
        left = self._running()
        stage = min((process.definition.stage for process in left), default=self._stage)
        if stage > self._stage:
            self._stage = stage
            self._deadline = time.monotonic() + (HURRY_SECONDS if self._hurry else STAGE_SECONDS)
            for process in left:
                if process.definition.stage == stage:
                    process.signal(signal.SIGTERM)

    def _kill(self, processes: Sequence[Process]) -> None:
        for process in processes:
            process.kill()
            self._close_pipe(process)

    # -- the outside --------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        with suppress(OSError):  # a full disk must not end the service
            self._report("running" if self._stage is None else "stopping", self._processes)

    @contextmanager
    def _wakeups(self) -> Iterator[None]:
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(reading, selectors.EVENT_READ, lambda: os.read(reading, 4096))
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = {number: signal.signal(number, lambda n, _: self._signals.append(n)) for number in numbers}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda _n, _f: None)
        wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            os.close(reading)
            os.close(writing)
