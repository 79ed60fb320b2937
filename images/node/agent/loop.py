"""From boot to join: tries for ever, waits longer each time, and says in one line what it waits for."""

import random
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tokens.wire import TokenError

from . import clock, settings, tpm
from .errors import AgentError, RefusedError, ValidityError
from .net import Server, plain
from .report import Reporter

LONGEST_PAUSE = 60.0
WAITS_FOR_TIME = 5
"""Failures for want of the time, about a minute, that a time service has before the boot service is asked for it."""
STALE = 410
"""Sealed too long ago, or by a key that is gone: begin again at once."""


def say(line: str) -> None:
    """One line for the journal and the console."""
    print(f"netboot-join: {line}", file=sys.stderr, flush=True)


def waiting(failures: int, error: Exception, chance: Callable[[], float] = random.random) -> float:
    """Seconds to wait after so many failures in a row: half to all of 2, 4, 8 … 60, never less than was asked for.

    A rule of its own beside `images.values.backoff`, which is not there on the machine.
    """
    longest = 1.0 if isinstance(error, RefusedError) and error.status == STALE else 2.0 ** min(failures, 10)
    pause = min(longest, LONGEST_PAUSE) * (0.5 + chance() / 2)
    asked = error.after if isinstance(error, AgentError) else 0.0
    return max(pause, asked * (1 + chance() / 4))


@dataclass
class Agent:
    """One machine's. All that touches the machine can be replaced."""

    root: Path
    say: Callable[[str], object] = say
    pause: Callable[[float], object] = time.sleep
    open_tpm: Callable[[Path], AbstractContextManager[tpm.Tpm | None]] = tpm.opened
    now: Callable[[], float] = time.time
    set_clock: Callable[[float], None] = clock.not_ours
    disciplined: Callable[[], bool] = clock.nobody_s
    _reporter: Reporter | None = None
    _waits_for_time: int = 0

    def run(self) -> None:
        """Return when this boot has joined."""
        failures = 0
        while True:
            try:
                self._join()
            except (AgentError, TokenError, OSError) as error:
                failures += 1
                wait = waiting(failures, error)
                reason = plain(str(error) if isinstance(error, AgentError) else _reason(error))
                self.say(f"{reason}; trying again in {wait:.0f} s")
                if self._reporter is not None:
                    self._reporter.say("Failed", reason)
                self.pause(wait)
            else:
                break
        if self._reporter is not None:
            self._reporter.close()

    def _join(self) -> None:
        known = settings.read_settings(self.root)
        if not known.join_url:
            self.say("this site's bundle names no join_url, so there is nothing to join")
            return
        clocks = clock.Clock(self.say, clock.floor(self.root, known.issued), self.now, self.set_clock)
        clocks.raise_to_floor()
        if self._has_joined(known.boot):
            self.say("this boot has joined already")
            return
        if self._reporter is None:
            self._reporter = Reporter(known)
            self._reporter.say("Joining")
        # Not before: what is built on cryptography is half of what the agent imports
        from . import exchange, kubelet
        from .key import keep
        from .request import Request

        key = keep(self.root / settings.RUN / "join.key")
        server = Server(known.join_url, known.authorities)
        facts = exchange.Facts(
            known.boot, settings.hints(self.root), settings.sealed_nonce(self.root), settings.event_log(self.root)
        )
        try:
            with self.open_tpm(self.root) as device:
                admission = exchange.prove(lambda path, body: server.call("POST", path, body), device, key, facts)
        except ValidityError as error:
            if error.early and self._nobody_holds_the_clock():
                clocks.advance(clock.date_of(Server(known.report, seconds=10)), known.report)
            raise
        if clock.time_service(self.root, self.disciplined) != "synchronised":
            clocks.correct(admission.now_ms / 1000, "join")
        self.say(f"attested; this is node {admission.node_name} of cluster {admission.cluster}")
        issued = Request(admission, key, self.say, self.pause).obtain()
        kubelet.install(self.root, known.boot, admission, issued, key)
        self.say(f"joined as {admission.node_name}; the kubelet may start")

    def _has_joined(self, boot: str) -> bool:
        if not (self.root / settings.RUN / "joined").exists():  # most have not
            return False
        from . import kubelet

        return kubelet.has_joined(self.root, boot, self.now())

    def _nobody_holds_the_clock(self) -> bool:
        """Whether no time service does, or one that runs has had its time to find its servers."""
        service = clock.time_service(self.root, self.disciplined)
        self._waits_for_time += service == "running"
        return service == "none" or (service == "running" and self._waits_for_time > WAITS_FOR_TIME)


def _reason(error: Exception) -> str:
    if isinstance(error, TokenError):
        return f"the TPM's answer cannot be read: {error}"
    return f"this machine's own files: {error}"
