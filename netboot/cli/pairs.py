"""Rounds of pairwise measurements, run through a command of the operator's: `kubectl exec`, ssh, `ip netns exec`.

Nothing is left running: each side of a measurement ends by itself, by timeout(1) where it runs, and is ended here when
the other failed, or at Ctrl-C.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from dataclasses import dataclass

from images import cancel
from images.cancel import Cancellation, EndedError, Interruptible
from images.errors import CommandError, TooMuchOutputError
from images.run import run
from netboot.fabric.schedule import Pair
from netboot.fabric.tools import Tool, not_yet, why
from netboot.fabric.verdict import Measurement

LISTENS_WITHIN = 30.0
"""Seconds that a server may take until it listens: kubectl takes some, a busy machine more."""
PAUSE = 0.3
MOST_BYTES = 1 << 20
"""That one side of a measurement may write: iperf3's JSON of 60 s has a tenth of it."""


@dataclass(frozen=True, slots=True)
class Transport:
    """How a command reaches a machine: the words of `--via`, and the address by which others reach it."""

    via: Sequence[str]
    addresses: Mapping[str, str]

    def command(self, machine: str, words: Sequence[str]) -> list[str]:
        """One line that runs on that machine."""
        return [*(word.replace("{machine}", machine) for word in self.via), *words]


class Conductor:
    """Runs rounds, one after the other, and keeps what was measured, also when it is interrupted."""

    def __init__(self, transport: Transport, tool: Tool, at_once: int, done: Callable[[int], None]) -> None:
        self._transport, self._tool, self._at_once, self._done = transport, tool, at_once, done
        # The operator's own command: its plug-ins for credentials read what nobody can list. Messages are read here.
        self._environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        self.measurements: list[Measurement] = []

    def conduct(self, rounds: Iterable[Sequence[Pair]]) -> None:
        """Both ways of each pair. `done` is told of each measurement.

        Raises:
            KeyboardInterrupt: Ctrl-C; all that ran has ended.
        """
        with Interruptible() as ending:
            for number, pairs in enumerate(rounds):
                self._round(number, pairs, ending)

    def _round(self, number: int, pairs: Sequence[Pair], ending: Cancellation) -> None:
        with ThreadPoolExecutor(self._at_once) as threads:
            try:
                both = [threads.submit(self._both_ways, number, pair, ending) for pair in pairs]
                for ended in as_completed(both):
                    ended.result()
            except BaseException:
                ending.tell()
                threads.shutdown(cancel_futures=True)
                raise

    def _both_ways(self, number: int, pair: Pair, ending: Cancellation) -> None:
        ending.adopt()
        for way, (source, target) in enumerate((pair, pair[::-1])):
            cancel.check()
            self.measurements.append(self._measure(2 * number + way, source, target))
            self._done(1)

    def _measure(self, turn: int, source: str, target: str) -> Measurement:
        """From source to target.

        Raises:
            EndedError: at Ctrl-C.
        """
        with closing(Cancellation()) as ours, ThreadPoolExecutor(1) as threads:
            server = threads.submit(self._serve, turn, target, ours)
            try:
                gbps, said = self._ask(turn, source, target, server)
                words = "" if gbps is not None else self._reason(said, server, source, target)
            finally:
                ours.tell()
                with suppress(CommandError, EndedError):
                    server.result()
        return Measurement(source, target, gbps, words)

    def _serve(self, turn: int, target: str, ours: Cancellation) -> None:
        ours.adopt()
        command = self._transport.command(target, self._tool.server(turn))
        self._run(command)

    def _ask(self, turn: int, source: str, target: str, server: "Future[None]") -> tuple[float | None, str]:
        """Gbit/s, or None and what the client said; again while the server does not listen. iperf3's exit status is 0
        also where its JSON has nothing but an error."""
        command = self._transport.command(source, self._tool.client(turn, self._transport.addresses[target]))
        late = time.monotonic() + LISTENS_WITHIN
        while True:
            try:
                said = self._run(command)
                gbps = self._tool.gbps(said)
            except TooMuchOutputError as error:
                return None, error.words
            except CommandError as error:
                gbps, said = None, error.output
            if gbps is not None or server.done() or time.monotonic() >= late or not not_yet(said):
                return gbps, said
            cancel.pause(PAUSE)

    def _run(self, command: Sequence[str]) -> str:
        """What a machine says is a stranger's: bounded in time and bytes."""
        limit = self._tool.limit + LISTENS_WITHIN
        return run(command, env=self._environment, timeout=limit, most_bytes=MOST_BYTES)

    def _reason(self, said: str, server: "Future[None]", source: str, target: str) -> str:
        """The server's own words, where it failed before anybody came to it."""
        failure = server.exception() if server.done() else None
        if isinstance(failure, TooMuchOutputError):
            return f"{target}: {failure.words}"
        if isinstance(failure, CommandError) and not_yet(said):
            return f"{target}: {why(failure.output)}"
        return f"{source}: {why(said)}"
