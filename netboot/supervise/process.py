"""A process that is kept running: how it is begun, what it is now, when it will be again."""

import logging
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from images.values.backoff import Backoff
from netboot.listeners import take_again
from netboot.supervise.pulse import UNWATCHED, Pulse, Silence

log = logging.getLogger(__name__)

RESTARTS = Backoff(first=0.2, longest=20.0)
"""Before a process that died is started again."""
STEADY_SECONDS = 30.0
"""A process that ran this long has earned a quick restart."""
MOST_DEATHS = 2
"""In a row; beyond, the listener that it does not serve is given up until it is started again."""
UNREADY = 0.5
"""The part of the silence allowed after which it counts as not ready."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What to keep running. `spec(ready_fd, listener_fd)` gives what it reads from its standard input.

    `stage`: processes of stage 0 are stopped first; the next stage when they have ended. `listen` makes its socket anew
    after the old one was given up.
    """

    name: str
    spec: Callable[[int, int | None], bytes]
    stage: int = 0
    listener: socket.socket | None = None
    listen: Callable[[], socket.socket] | None = None
    reload: bool = False
    """Whether SIGHUP is passed on to it."""
    inherits: tuple[int, ...] = ()
    """Further descriptors that it gets."""
    silence: Silence = UNWATCHED


@dataclass(slots=True)
class Process:
    """A definition and the process that it is at the moment (`popen`), or when it will be one again (`start_at`).

    In a process group of its own, so that Ctrl-C on a terminal reaches the supervisor alone; the kernel kills it when
    the supervisor ends (`netboot.process.end_with`). Times are of the monotonic clock.
    """

    definition: Definition
    listener: socket.socket | None
    popen: subprocess.Popen[bytes] | None = None
    problem: str = ""
    """Why it is not ready though it runs: it is silent."""
    since: float = 0.0
    restarts: int = 0
    deaths_in_a_row: int = 0
    start_at: float | None = None
    last_exit: str | None = None
    pipe: IO[bytes] | None = field(default=None, repr=False)
    """Brings what it writes (`netboot.process`), and its end."""
    pulse: Pulse = field(init=False)

    def __post_init__(self) -> None:
        self.pulse = Pulse(self.definition.silence)

    @property
    def ready(self) -> bool:
        """It runs, has said that it is ready, and is heard."""
        return self.popen is not None and self.pulse.ready and not self.problem

    @property
    def pid(self) -> int | None:
        """None while it is not running."""
        return self.popen.pid if self.popen is not None else None

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Run `command` with the name as its last argument; `pipe` is open then.

        Raises:
            OSError: it cannot be started, or its listener not be made.
        """
        self.start_at = None
        if self.listener is None and self.definition.listen is not None:
            self.listener = self.definition.listen()
        elif self.listener is not None:
            take_again(self.listener)
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        listener = self.listener.fileno() if self.listener is not None else None
        try:
            self.popen = subprocess.Popen(
                [*command, self.definition.name],
                stdin=subprocess.PIPE,
                env=environment,
                pass_fds=[writing, *self.definition.inherits, *([] if listener is None else [listener])],
                process_group=0,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self.since, self.problem = time.monotonic(), ""
        self.pulse.start(self.since)
        self.pipe = os.fdopen(reading, "rb", buffering=0)
        assert self.popen.stdin is not None
        with suppress(BrokenPipeError), self.popen.stdin as stdin:
            stdin.write(self.definition.spec(writing, listener))

    def reap(self) -> bool:
        """Whether it has ended since it was started; then it runs no more, and `last_exit` says how it ended."""
        assert self.popen is not None
        status = self.popen.poll()
        if status is None:
            return False
        self.popen, self.problem, self.last_exit = None, "", _exit(status)
        return True

    def judge(self, now: float) -> bool:
        """Whether its silence has changed what there is to tell; one that was silent for too long is sent SIGKILL.

        It is not waited for: a process in the hands of a disk that stands still dies when that moves again.
        """
        loop, part = self.pulse.quietest(now)
        problem = f"nothing is heard of its {loop}" if part >= UNREADY and self.pulse.ready else ""
        if part >= 1.0 and self.popen is not None:
            problem = f"nothing is heard of its {loop}: killed"
            self.popen.kill()
        changed, self.problem = problem != self.problem, problem
        if changed:
            log.error("%s: %s", self.definition.name, problem or "is heard again")
        return changed

    def postpone(self, why: str) -> None:
        """It died, or could not be started: it is to be started again, the later the oftener that happened."""
        steady = time.monotonic() - self.since > STEADY_SECONDS and self.since > 0
        self.deaths_in_a_row = 0 if steady else self.deaths_in_a_row + 1
        self.restarts += 1
        wait = RESTARTS.seconds(max(1, self.deaths_in_a_row))
        self.start_at = time.monotonic() + wait
        log.error("%s %s; started again in %.1f s (restart %d)", self.definition.name, why, wait, self.restarts)
        if self.deaths_in_a_row > MOST_DEATHS and self.definition.listen is not None:
            # Connections in its queue would wait for as long as it takes; the sockets of its like get them instead.
            self.close_listener()

    def close_listener(self) -> None:
        """Give the supervisor's copy up; the address is open for as long as the process itself wants it."""
        if self.listener is not None:
            self.listener.close()
            self.listener = None

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal; nothing happens where it does not run."""
        if self.popen is not None:
            with suppress(ProcessLookupError):
                self.popen.send_signal(number)

    def kill(self) -> None:
        """End it now, and wait until it has ended."""
        assert self.popen is not None
        self.popen.kill()
        self.last_exit = _exit(self.popen.wait())
        self.popen = None


def _exit(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"
