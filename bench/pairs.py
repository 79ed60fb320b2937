"""hello and attest as fast as one join process answers them: the agent's own code, new connections, new boots."""

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from bench.members import Door, Member
from bench.observed import Seen, observed
from bench.serving import BenchError
from images.node.agent.errors import AgentError
from images.node.agent.exchange import Facts, prove
from images.node.agent.net import Server

THREADS = 16
"""At once: as many as one process serves without a queue (half its threads would be the share of one address)."""


@dataclass(frozen=True)
class Paired:
    """Exchanges that ended with a token, in so many seconds; seconds of each by phase; what went wrong."""

    pairs: int
    seconds: float
    phases: dict[str, list[float]]
    errors: list[str]

    @property
    def per_second(self) -> float:
        """Pairs per second."""
        return self.pairs / self.seconds


def exchange(fleet: Sequence[Member], door: Door, seconds: float, cores: Collection[int]) -> Paired:
    """So many seconds of exchanges, from a process that runs on `cores` only.

    Raises:
        BenchError: none succeeded, or more than one in a hundred failed.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(theirs, list(fleet), door, seconds, set(cores)), daemon=True)
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        raise BenchError("the process that makes exchanges ended") from None
    finally:
        process.terminate()
        process.join()
    assert isinstance(found, Paired)
    if not found.pairs or len(found.errors) > found.pairs / 100:
        raise BenchError(f"{found.pairs} exchanges succeeded, {len(found.errors)} failed: {found.errors[:3]}")
    return found


def _run(
    wire: "Connection[Any, Any]", fleet: Sequence[Member], door: Door, seconds: float, cores: Collection[int]
) -> None:
    os.sched_setaffinity(0, cores)
    errors: list[str] = []
    done: list[Seen] = []
    with observed() as is_of:
        until = time.monotonic() + seconds

        def work(mine: Sequence[Member]) -> None:
            server, resets = Server(door.join, door.authorities), 0
            while mine and time.monotonic() < until:
                for one in mine:
                    seen = Seen(one.address)
                    is_of(seen)
                    tpm = one.tpm()
                    tpm.machine.resets += resets
                    facts = Facts(one.boot, {"uuid": None, "serial": None, "macs": [one.mac]})
                    try:
                        key = ec.generate_private_key(ec.SECP256R1())
                        prove(lambda path, body: server.call("POST", path, body), tpm, key, facts)
                    except AgentError as error:
                        errors.append(str(error))
                    else:
                        done.append(seen)
                    if time.monotonic() >= until:
                        break
                resets += 1

        began = time.monotonic()
        threads = [threading.Thread(target=work, args=(fleet[n::THREADS],), daemon=True) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
    phases = {name: [one.seconds[name] for one in done] for name in ("hello", "attest")}
    with contextlib.suppress(OSError):
        wire.send(Paired(len(done), took, phases, errors))
