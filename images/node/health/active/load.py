"""A program of its own: loads every CPU at once for some seconds, and says how much each did.

`python3 load.py memory|cpu SECONDS` prints {"rates": {"0": bytes a second, …}} by CPU. Each is a process that is bound
to its CPU, so that what is slow is one CPU, or its memory, and not the scheduler's choice. Memory: copies of two
buffers that no cache holds, counted as STREAM's Copy counts them (read and written). CPU: SHA-256.
"""

import hashlib
import json
import os
import sys
import time

MOST_SECONDS = 20.0
BUFFER = 32 * 2**20
"""Bytes of each of two buffers of each CPU, less where memory is short."""
SHARE = 8
"""At most this part of the memory that is available is touched."""


def copied(size: int, deadline: float) -> int:
    """Bytes read and written until then, at least once."""
    source, target = memoryview(bytearray(b"\1") * size), memoryview(bytearray(b"\2") * size)
    done = 0
    while not done or time.monotonic() < deadline:
        target[:] = source
        done += 2 * size
    return done


def hashed(deadline: float) -> int:
    """Bytes that were hashed until then, at least once."""
    block, done = bytes(256 * 1024), 0
    while not done or time.monotonic() < deadline:
        hashlib.sha256(block).digest()
        done += len(block)
    return done


def buffer(cpus: int) -> int:
    """Bytes that a buffer may have with so many CPUs."""
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(2**20, min(BUFFER, available // SHARE // (2 * cpus)))


def load(what: str, cpu: int, size: int, seconds: float) -> float:
    """Bytes a second of one CPU, which this process is bound to."""
    os.sched_setaffinity(0, {cpu})
    started = time.monotonic()
    done = copied(size, started + seconds) if what == "memory" else hashed(started + seconds)
    return done / (time.monotonic() - started)


def rates(what: str, seconds: float) -> dict[str, float]:
    """Of each CPU that this process may run on, all at once.

    Raises:
        SystemExit: the process of a CPU died, of bad memory (SIGBUS) or for want of it: there is no sum of all.
    """
    cpus = sorted(os.sched_getaffinity(0))
    size = buffer(len(cpus))
    children = {}
    for cpu in cpus:
        ours, theirs = os.pipe()
        if os.fork() == 0:
            status = 1
            try:
                os.write(theirs, f"{load(what, cpu, size, seconds):.0f}".encode())
                status = 0
            finally:
                os._exit(status)
        os.close(theirs)
        children[cpu] = ours
    found = {}
    for cpu, pipe in children.items():
        with os.fdopen(pipe, "rb") as file:
            found[str(cpu)] = file.read()
    if dead := [cpu for cpu, said in found.items() if not said]:
        sys.exit(f"the process of CPU {', '.join(dead[:8])} died")
    return {cpu: float(said) for cpu, said in found.items()}


if __name__ == "__main__":
    print(json.dumps({"rates": rates(sys.argv[1], min(float(sys.argv[2]), MOST_SECONDS))}))
