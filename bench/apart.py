"""Load from a process of its own, so that the bench's own interpreter is in nobody's way."""

import contextlib
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from bench.members import Member
from bench.serving import BenchError

THREADS = 16
"""At once: as many as one join process serves of one address, and half of what it serves at all."""


def apart(work: Callable[..., Any], *args: Any) -> Any:
    """What `work(*args)` returns in a process that is started for it.

    Raises:
        BenchError: it failed.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_do, args=(theirs, work, args), daemon=True)
    process.start()
    theirs.close()
    try:
        done = ours.recv()
    except EOFError:
        done = RuntimeError("the process ended")
    finally:
        process.terminate()
        process.join()
    if isinstance(done, Exception):
        raise BenchError(f"{work.__name__}: {type(done).__name__}: {done}")
    return done


@contextlib.contextmanager
def worker_processes(
    count: int, work: Callable[["Connection[Any, Any]"], None]
) -> Iterator[list["Connection[Any, Any]"]]:
    """Processes of `work`, each with one end of a pipe: our ends. They end with the block."""
    context = multiprocessing.get_context("spawn")
    pairs = [context.Pipe() for _ in range(count)]
    processes = [context.Process(target=work, args=(theirs,), daemon=True) for _, theirs in pairs]
    try:
        for process in processes:
            process.start()
        yield [ours for ours, _ in pairs]
    finally:
        for process in processes:
            if process.pid is not None:
                process.terminate()
                process.join()


def _do(wire: "Connection[Any, Any]", work: Callable[..., Any], args: Sequence[Any]) -> None:
    try:
        done = work(*args)
    except Exception as error:  # noqa: BLE001 - told to the bench
        done = RuntimeError(f"{type(error).__name__}: {error}")
    wire.send(done)


def in_turn(fleet: Sequence[Member], seconds: float, act: Callable[[Member], None]) -> float:
    """Have sixteen threads act for the machines in turn, each time after a reset; the seconds that it took."""
    began = time.monotonic()

    def walk(machines: list[Member]) -> None:
        while machines:
            for number, member in enumerate(machines):
                if time.monotonic() - began >= seconds:
                    return
                act(member)
                machines[number] = member.rebooted()

    threads = [threading.Thread(target=walk, args=(list(fleet[n::THREADS]),), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - began
