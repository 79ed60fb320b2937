"""Clients that fetch bytes: processes of their own, one buffer each, the same for every server."""

import contextlib
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

from bench.apart import worker_processes
from bench.serving import HOST, BenchError

CLIENTS = 8
RANGE = 4 * 1024 * 1024
_BUFFER = 512 * 1024


@dataclass(frozen=True)
class Job:
    """What one client does on one connection: each of `ranges` in turn, or the whole file where that is empty."""

    port: int
    path: str
    size: int
    """Bytes of the file."""
    ranges: Sequence[tuple[int, int]]
    """First byte and byte after the last."""


@dataclass(frozen=True)
class Done:
    """What one client did: bytes of bodies, start and end on the machine's monotonic clock, CPU seconds."""

    received: int
    start: float
    end: float
    cpu: float


def whole_files(port: int, path: str, size: int, times: int) -> list[Job]:
    """Every client fetches the whole file, `times` times."""
    return [Job(port, path, size, [(0, size)] * times)] * CLIENTS


def all_ranges(port: int, path: str, size: int, times: int) -> list[Job]:
    """Every client fetches the file range by range, each client from another place on, as resuming machines do."""
    spans = [(at, min(at + RANGE, size)) for at in range(0, size, RANGE)]
    shift = max(1, len(spans) // CLIENTS)
    turned = [spans[client * shift :] + spans[: client * shift] for client in range(CLIENTS)]
    return [Job(port, path, size, spans * times) for spans in turned]


def fetch(job: Job) -> Done:
    """Do the job.

    Raises:
        BenchError: an answer that is not what was asked for.
    """
    buffer = memoryview(bytearray(_BUFFER))
    received, start, cpu = 0, time.monotonic(), time.process_time()
    with socket.create_connection((HOST, job.port), timeout=60) as connection:
        for first, end in job.ranges:
            part = (first, end) != (0, job.size)
            asked = f"Range: bytes={first}-{end - 1}\r\n" if part else ""
            connection.sendall(f"GET {job.path} HTTP/1.1\r\nHost: bench\r\n{asked}\r\n".encode())
            left = _head(connection, buffer, b"206" if part else b"200", end - first)
            while left:
                got = connection.recv_into(buffer, min(left, _BUFFER))
                if not got:
                    raise BenchError(f"{job.path}: the connection ended {left} bytes early")
                left -= got
            received += end - first
    return Done(received, start, time.monotonic(), time.process_time() - cpu)


def _head(connection: socket.socket, buffer: memoryview, status: bytes, expected: int) -> int:
    """Read an answer's headers; bytes of the body that are still to come."""
    head = b""
    while b"\r\n\r\n" not in head:
        got = connection.recv_into(buffer, 64 * 1024)
        if not got:
            raise BenchError("the connection ended inside the headers")
        head += buffer[:got]
    head, _, body = head.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), -1)
    if lines[0].split()[1] != status or length != expected:
        raise BenchError(f"asked for {expected} bytes, was answered: {head.decode(errors='replace')}")
    return length - len(body)


def _client(wire: "Connection[object, object]") -> None:
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            job = wire.recv()
            assert isinstance(job, Job)
            try:
                wire.send(fetch(job))
            except (BenchError, OSError) as error:
                wire.send(str(error))


class Clients:
    """Eight client processes, waiting for jobs."""

    def __init__(self, wires: "Sequence[Connection[object, object]]") -> None:
        self._wires = wires

    def run(self, jobs: Sequence[Job]) -> list[Done]:
        """One job for each client, all at once.

        Raises:
            BenchError: one of them failed.
        """
        for wire, job in zip(self._wires, jobs, strict=True):
            wire.send(job)
        answers = [wire.recv() for wire in self._wires]
        for answer in answers:
            if not isinstance(answer, Done):
                raise BenchError(str(answer))
        return [answer for answer in answers if isinstance(answer, Done)]


@contextlib.contextmanager
def clients(count: int = CLIENTS) -> Iterator[Clients]:
    """Start the client processes; they end with the block."""
    with worker_processes(count, _client) as pipes:
        yield Clients(pipes)
