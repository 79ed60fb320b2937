"""The supervisor: starts planes as processes, starts again what dies, stops them in order; knows nothing of their work.

Single-threaded, one `select`: signals and the planes' "ready" pipes wake it. Children are in process groups of their
own, so that Ctrl-C on a terminal reaches the supervisor alone; the kernel kills them when it ends (`planes.end_with`).
"""

import logging
import os
import random
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Literal

log = logging.getLogger(__name__)

FIRST_WAIT = 0.1
"""Seconds before a plane that died is started again; doubled with each death in a row, with jitter."""
LONGEST_WAIT = 10.0
STEADY_SECONDS = 30.0
"""A plane that ran this long has earned a quick restart."""
STAGE_SECONDS = 40.0
"""How long one stage of a graceful stop may take before what is left is killed."""
HURRY_SECONDS = 2.0
HURRY_AFTER = 0.2
"""Seconds after the first signal from which on another one means haste."""


@dataclass(frozen=True, slots=True)
class Plane:
    """One process. `orders(ready_fd, listener_fd)` gives what it reads from its standard input.

    `stage`: planes of stage 0 are stopped first; the next stage when they have ended. `listen` makes its socket anew
    after the old one was given up.
    """

    name: str
    orders: Callable[[int, int | None], bytes]
    stage: int = 0
    listener: socket.socket | None = None
    listen: Callable[[], socket.socket] | None = None
    reload: bool = False
    """Whether SIGHUP is passed on to it."""


@dataclass(slots=True)
class Child:
    """A plane and the process that it is at the moment, or when it will be one again."""

    plane: Plane
    listener: socket.socket | None
    process: subprocess.Popen[bytes] | None = None
    ready: bool = False
    since: float = 0.0
    restarts: int = 0
    deaths_in_a_row: int = 0
    start_at: float | None = None
    last_exit: str | None = None
    pipe: IO[bytes] | None = field(default=None, repr=False)


class Supervisor:
    """Runs planes until SIGTERM or SIGINT. `report` hears of every change, `once_ready` when first all are ready."""

    def __init__(
        self,
        command: Sequence[str],
        planes: Sequence[Plane],
        *,
        environment: dict[str, str],
        report: Callable[[Literal["running", "stopping"], Sequence[Child]], None] = lambda _state, _children: None,
        once_ready: Callable[[], None] = lambda: None,
        died: Callable[[int], None] = lambda _pid: None,
    ) -> None:
        self._command, self._environment = list(command), environment
        self._children = [Child(plane, plane.listener, start_at=0.0) for plane in planes]
        self._report, self._once_ready, self._died = report, once_ready, died
        self._selector = selectors.DefaultSelector()
        self._signals: list[int] = []
        self._stage: int | None = None
        """The stage that is being stopped; None: running."""
        self._asked = 0.0
        self._hurry = False
        self._deadline = float("inf")
        self._announced = False

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
                    self._advance()
            finally:
                self._kill(self._running())

    def _running(self) -> list[Child]:
        return [child for child in self._children if child.process is not None]

    def _timeout(self) -> float:
        due = [child.start_at for child in self._children if child.start_at is not None and self._stage is None]
        return max(0.0, min([*due, self._deadline, time.monotonic() + 60.0]) - time.monotonic())

    # -- starting ---------------------------------------------------------------------------------------------------

    def _start_due(self) -> None:
        now = time.monotonic()
        for child in self._children:
            if self._stage is None and child.start_at is not None and child.start_at <= now:
                child.start_at = None
                try:
                    self._start(child)
                except OSError as error:
                    self._postpone(child, f"cannot be started: {error}")

    def _start(self, child: Child) -> None:
        if child.listener is None and child.plane.listen is not None:
            child.listener = child.plane.listen()
        reading, writing = os.pipe()
        listener = child.listener.fileno() if child.listener is not None else None
        try:
            child.process = subprocess.Popen(
                [*self._command, child.plane.name],
                stdin=subprocess.PIPE,
                env=self._environment,
                pass_fds=[writing] if listener is None else [writing, listener],
                process_group=0,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        child.ready, child.since = False, time.monotonic()
        child.pipe = os.fdopen(reading, "rb", buffering=0)
        self._selector.register(child.pipe, selectors.EVENT_READ, lambda: self._heard(child))
        assert child.process.stdin is not None
        with suppress(BrokenPipeError), child.process.stdin as stdin:
            stdin.write(child.plane.orders(writing, listener))
        self._tell()

    def _heard(self, child: Child) -> None:
        assert child.pipe is not None
        if not child.pipe.read(16):
            self._close_pipe(child)
            return
        child.ready = True
        log.info("%s is ready", child.plane.name)
        self._tell()
        if not self._announced and all(one.ready for one in self._children):
            self._announced = True
            self._once_ready()

    def _close_pipe(self, child: Child) -> None:
        if child.pipe is not None:
            self._selector.unregister(child.pipe)
            child.pipe.close()
            child.pipe = None

    # -- dying ------------------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        for child in self._running():
            process = child.process
            assert process is not None
            status = process.poll()
            if status is None:
                continue
            self._close_pipe(child)
            self._died(process.pid)
            child.process, child.ready = None, False
            child.last_exit = _words(status)
            if self._stage is None:
                self._postpone(child, f"ended: {child.last_exit}")
            else:
                log.info("%s ended: %s", child.plane.name, child.last_exit)
                self._tell()

    def _postpone(self, child: Child, why: str) -> None:
        steady = time.monotonic() - child.since > STEADY_SECONDS and child.since > 0
        child.deaths_in_a_row = 0 if steady else child.deaths_in_a_row + 1
        child.restarts += 1
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** max(0, child.deaths_in_a_row - 1)) * random.uniform(0.75, 1.25)  # noqa: S311 — jitter
        child.start_at = time.monotonic() + wait
        log.error("%s %s; started again in %.1f s (restart %d)", child.plane.name, why, wait, child.restarts)
        if child.deaths_in_a_row > 2 and child.plane.listen is not None and child.listener is not None:
            # Connections in its queue would wait for as long as it takes; the other workers' sockets get them instead.
            child.listener.close()
            child.listener = None
        self._tell()

    # -- stopping ---------------------------------------------------------------------------------------------------

    def _heed_signals(self) -> None:
        taken, self._signals = self._signals, []
        for number in taken:
            if number == signal.SIGHUP:
                log.info("SIGHUP: reading the inventory again")
                for child in self._children:
                    if child.plane.reload:
                        _send(child, signal.SIGHUP)
            elif number in (signal.SIGTERM, signal.SIGINT):
                self._stop(signal.Signals(number).name)

    def _stop(self, name: str) -> None:
        if self._stage is not None:
            if time.monotonic() - self._asked < HURRY_AFTER:
                return  # `timeout`, a shell and a terminal may each send the same one
            log.warning("%s again: hurrying", name)
            self._hurry = True
            self._deadline = time.monotonic() + HURRY_SECONDS
            for child in self._running():
                _send(child, signal.SIGTERM)
            return
        log.info("%s: stopping; requests in flight are finished (send it again to hurry)", name)
        self._stage, self._asked = -1, time.monotonic()
        for child in self._children:
            child.start_at = None
            if child.listener is not None:
                child.listener.close()  # from now on the address is open for as long as its plane wants it
                child.listener = None
        self._tell()

    def _advance(self) -> None:
        """Begin the next stage when the one before has ended; kill what does not end in time."""
        if self._stage is None:
            return
        if time.monotonic() >= self._deadline:
            late = [child for child in self._running() if self._hurry or child.plane.stage <= self._stage]
            log.error("killed, for not ending in time: %s", ", ".join(child.plane.name for child in late))
            self._kill(late)
        left = self._running()
        stage = min((child.plane.stage for child in left), default=self._stage)
        if stage > self._stage:
            self._stage = stage
            self._deadline = time.monotonic() + (HURRY_SECONDS if self._hurry else STAGE_SECONDS)
            for child in left:
                if child.plane.stage == stage:
                    _send(child, signal.SIGTERM)

    def _kill(self, children: Sequence[Child]) -> None:
        for child in children:
            assert child.process is not None
            child.process.kill()
            child.last_exit = _words(child.process.wait())
            child.process = None
            self._close_pipe(child)

    # -- the outside ------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        with suppress(OSError):  # a full disk must not end the service
            self._report("running" if self._stage is None else "stopping", self._children)

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


def _send(child: Child, number: signal.Signals) -> None:
    if child.process is not None:
        with suppress(ProcessLookupError):
            child.process.send_signal(number)


def _words(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"
