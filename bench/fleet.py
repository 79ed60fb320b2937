"""A fleet that boots at once: the shipped agent once for each machine, until every one has its certificate in hand."""

import contextlib
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.apart import worker_processes
from bench.members import Door, Member, furnish
from bench.observed import Seen, observed
from bench.serving import BenchError
from images.node.agent import kubelet
from images.node.agent.loop import Agent

PROCESSES = 2
RETRY_POLICY = 300.0
"""Seconds after which a fleet that has not joined is given up."""


@dataclass(frozen=True)
class Joined:
    """All machines of one round, and the CPU seconds of the processes that simulate them."""

    machines: list[Seen]
    cpu: float

    @property
    def seconds(self) -> float:
        """From the start of the first agent to the last certificate."""
        return max(machine.end for machine in self.machines) - min(machine.start for machine in self.machines)


class Fleet:
    """Processes with the agents of their machines."""

    def __init__(self, wires: "Sequence[Connection[Any, Any]]") -> None:
        self._wires = wires

    def each(self) -> list["Fleet"]:
        """Its processes, as fleets of one."""
        return [Fleet([wire]) for wire in self._wires]

    def join(
        self, fleet: Sequence[Member], door: Door, pairs: Path | None = None, seconds: float = RETRY_POLICY
    ) -> Joined:
        """Have all of them join, started in the same moment. `pairs`: a folder for certificates with keys, NAME.pem.

        Raises:
            BenchError: one of them did not, in so many seconds.
        """
        for number, wire in enumerate(self._wires):
            wire.send((list(fleet[number :: len(self._wires)]), door, pairs))
        self._answers(60.0)  # everything is prepared
        for wire in self._wires:
            wire.send("go")
        answers = self._answers(seconds)
        return Joined([machine for seen, _ in answers for machine in seen], sum(cpu for _, cpu in answers))

    def _answers(self, timeout: float) -> list[Any]:
        deadline, answers = time.monotonic() + timeout, []
        for wire in self._wires:
            if not wire.poll(max(0.0, deadline - time.monotonic())):
                raise BenchError(f"the fleet has not joined in {timeout:.0f} s")
            answers.append(wire.recv())
        failures = [answer for answer in answers if isinstance(answer, str)]
        if any(failures):
            raise BenchError(f"the fleet did not join: {'; '.join(filter(None, failures))}")
        return answers


@contextlib.contextmanager
def fleet_processes(count: int = PROCESSES) -> Iterator[Fleet]:
    """Start the processes; they end with the block."""
    with worker_processes(count, _simulate) as pipes:
        yield Fleet(pipes)


def _simulate(wire: "Connection[Any, Any]") -> None:
    """A simulating process: rounds, for ever."""
    while True:
        members, door, pairs = wire.recv()
        with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
            try:
                roots = [furnish(Path(folder) / member.name, member, door) for member in members]
                ready = [(member, root, member.tpm()) for member, root in zip(members, roots, strict=True)]
            except Exception as error:  # noqa: BLE001 - told to the bench, which ends with it
                wire.send(f"{type(error).__name__}: {error}")
                return
            wire.send("")
            wire.recv()
            cpu = time.process_time()
            seen = _run(ready)
            fault = _without_certificate(seen, [root for _, root, _ in ready], members)
            for member, root, _ in ready if pairs is not None and not fault else ():
                shutil.copyfile(root / kubelet.PAIR[1:], pairs / f"{member.name}.pem")
            wire.send(fault or (seen, time.process_time() - cpu))


def _run(ready: Sequence[tuple[Member, Path, Any]]) -> list[Seen]:
    seen = [Seen(machine.address) for machine, _, _ in ready]
    go = threading.Event()
    with observed() as is_of:

        def join(machine: Seen, root: Path, tpm: Any) -> None:
            is_of(machine)
            agent = Agent(
                root, say=lambda line: _note(machine, line), open_tpm=lambda _root: contextlib.nullcontext(tpm)
            )
            go.wait()
            machine.start = time.monotonic()
            agent.run()
            machine.end = time.monotonic()

        threads = [
            threading.Thread(target=join, args=(machine, root, tpm), daemon=True)
            for machine, (_, root, tpm) in zip(seen, ready, strict=True)
        ]
        for thread in threads:
            thread.start()
        go.set()
        for thread in threads:
            thread.join()
    return seen


def _note(machine: Seen, line: str) -> None:
    if "again in" in line:
        machine.failures.append(line)


def _without_certificate(seen: Sequence[Seen], roots: Sequence[Path], members: Sequence[Member]) -> str:
    """Words about those that have none, of which there should not be any."""
    missing = [
        member.name
        for machine, root, member in zip(seen, roots, members, strict=True)
        if not machine.end or not kubelet.has_joined(root, member.boot, time.time())
    ]
    return f"{len(missing)} machines have no certificate, {missing[0]} for one" if missing else ""
