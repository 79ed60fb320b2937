"""A known machine's script while somebody floods the service with scripts, events and health reports, open loop."""

import contextlib
import json
import re
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.apart import worker_processes
from bench.asking import Question, asked
from bench.peers import nginx
from bench.procfs import rss_mib, settle
from bench.serving import HOST, AbsentError, BenchError
from bench.site import SHIPPED, Identity, Site, boot_path, make_site, netboot, write_paths
from bench.stats import paired
from bench.wrk import load

FLOODING = 2_000
"""Machines in whose name the flood comes."""
TIMES = 2
"""So many times what the service answers of itself, measured first."""
SECONDS = 120.0
_CONNECTIONS = 96
"""Of the flood: below `max_connections_per_address`, or it would be sent away at the door."""
_IDLE_WITHIN = 600.0
"""Seconds in which a service takes over what a flood has left."""
_WAITING = re.compile(r"^netboot_(?:journal|projection)_lag_records(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Round:
    """Milliseconds of each of the known machine's scripts, idle and in the flood; how many of these were refused; what
    the flood offered and got a second; the largest journals (MiB), controllers and all processes (MiB) meanwhile.

    `neighbour_…`: the same of a small file of nginx, on the same processors, which nobody floods; empty without nginx.
    """

    idle_ms: list[float]
    flooded_ms: list[float]
    refused: int
    offered: float
    answered: float
    statuses: dict[str, int]
    journals_mib: float
    memory_mib: float
    neighbour_idle_ms: list[float] = field(default_factory=list)
    neighbour_flooded_ms: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Flood:
    """All rounds; `capacity`: scripts a second of 32 connections that wait for each answer."""

    capacity: float
    seconds: float
    rounds: list[Round] = field(default_factory=list)

    def p99_ratio(self) -> float:
        """p99 of the known machine in the flood as a multiple of its p99 idle."""
        return paired((p99(each.flooded_ms) for each in self.rounds), (p99(each.idle_ms) for each in self.rounds))

    def neighbour_ratio(self) -> float | None:
        """The same of nginx, which has to wait for nothing of the flood but for a processor; None: it is not here."""
        if not all(each.neighbour_idle_ms for each in self.rounds):
            return None
        flooded = (p99(each.neighbour_flooded_ms) for each in self.rounds)
        return paired(flooded, (p99(each.neighbour_idle_ms) for each in self.rounds))

    def refused(self) -> int:
        """Scripts of the known machine that did not boot it."""
        return sum(each.refused for each in self.rounds)


def p99(values: Sequence[float]) -> float:
    """The value that one in a hundred exceeds."""
    return sorted(values)[min(len(values) - 1, len(values) * 99 // 100)]


def measure(folder: Path, rounds: int, seconds: float) -> Flood:
    """`rounds` times: idle for a quarter of `seconds`, then flooded for `seconds`, with the limits that are shipped."""
    site = make_site(folder / "flood", machines=FLOODING + 1, root_mib=1, ingest=SHIPPED)
    known, others = site.machines[-1], site.machines[:-1]
    questions = [Question(site.port, boot_path(known), b"\r\nNetboot-Outcome: boot\r\n")]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(netboot(site))
        with contextlib.suppress(AbsentError):
            questions.append(_neighbour(stack, site))
        capacity = load(server, write_paths(folder / "flood.paths", others), 3).per_second
        flood = Flood(capacity, seconds)
        for _ in range(rounds):
            _wait_until_idle(site)
            settle(server.pid)
            flood.rounds.append(_round(site, server.pid, questions, others, flood))
    return flood


def _neighbour(stack: contextlib.ExitStack, site: Site) -> Question:
    """A server of something as small as a script, which nobody floods."""
    blob = min((site.store / "blobs").iterdir(), key=lambda path: path.stat().st_size)
    path = f"blobs/{blob.name}"
    server = stack.enter_context(nginx(site.store, site.folder / "nginx", path))
    return Question(server.port, f"/v1/{path}", b"HTTP/1.1 200 ")


def _wait_until_idle(site: Site) -> None:
    """Until nothing waits to be taken over of what machines said, twice in a row.

    Raises:
        BenchError: it does not end.
    """
    deadline, times = time.monotonic() + _IDLE_WITHIN, 0
    while times < 2:
        waiting = [float(records) for records in _WAITING.findall(site.metrics())]
        times = times + 1 if waiting and not any(waiting) else 0
        if time.monotonic() > deadline:
            raise BenchError(
                f"after {_IDLE_WITHIN:.0f} s {max(waiting, default=0):.0f} records still wait in a journal"
            )
        time.sleep(1)


def _round(site: Site, pid: int, questions: Sequence[Question], others: Sequence[Identity], flood: Flood) -> Round:
    journals = site.folder / "data" / "journal"
    idle, _ = asked(questions, flood.seconds / 4)
    largest, memory, over = [0.0], [0.0], threading.Event()

    def look() -> None:
        while not over.wait(1):
            largest.append(sum(path.stat().st_size for path in journals.glob("*.db*")) / 2**20)
            memory.append(rss_mib(pid))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    with _flooding(site.port, others, TIMES * flood.capacity) as pipe:
        flooded, refused = asked(questions, flood.seconds)
        pipe.send("how much")
        if not pipe.poll(60):
            raise BenchError("the flood ended by itself")
        offered, statuses, took = pipe.recv()
    over.set()
    looking.join()
    answered, neighbour = sum(statuses.values()) / took, [*idle[1:], *flooded[1:]]
    figures = (offered / took, answered, dict(statuses), max(largest), max(memory))
    return Round(idle[0], flooded[0], refused[0], *figures, *neighbour)


@contextlib.contextmanager
def _flooding(port: int, others: Sequence[Identity], rate: float) -> "Iterator[Connection[Any, Any]]":
    """A flood that has begun: its first answers have come.

    Raises:
        BenchError: none came.
    """
    with worker_processes(1, partial(_flood, port, list(others), rate)) as [pipe]:
        try:
            if not pipe.poll(60):
                raise BenchError("the flood was not answered within 60 s")
            pipe.recv()
        except EOFError:
            raise BenchError("the flood ended by itself") from None
        yield pipe


def _flood(port: int, others: Sequence[Identity], rate: float, wire: "Connection[Any, Any]") -> None:
    """Send at `rate` whatever comes back, and tell of the first answers; what the sockets do not take is offered too,
    and lost."""
    poll, connections = select.epoll(), dict[int, socket.socket]()
    boots: list[tuple[str, str]] = []
    statuses, offered, began = Counter[str](), 0, time.monotonic()
    while not wire.poll(0):
        while len(connections) < _CONNECTIONS:
            try:
                connection = socket.create_connection((HOST, port), timeout=1)
            except OSError:
                break  # it is busy; the next turn tries again
            connection.setblocking(False)
            connections[connection.fileno()] = connection
            poll.register(connection.fileno(), select.EPOLLIN)
        due = int((time.monotonic() - began) * rate) - offered
        for connection in list(connections.values()) if due > 0 else ():
            share = b"".join(_request(others, boots, offered + n) for n in range(min(64, due // _CONNECTIONS + 1)))
            offered += min(64, due // _CONNECTIONS + 1)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                connection.send(share)
        offered = max(offered, int((time.monotonic() - began) * rate) - 64 * _CONNECTIONS)
        for descriptor, _ in poll.poll(0.001):
            data = b""
            with contextlib.suppress(OSError):  # one that was ended
                data = connections[descriptor].recv(1 << 18)
            if not data:
                poll.unregister(descriptor)
                connections.pop(descriptor).close()
                continue
            before = statuses.total()
            statuses.update(status.decode() for status in re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", data))
            if not before and statuses:
                wire.send("begun")
            if len(boots) < 50_000:
                found = re.findall(rb"netboot\.boot=([0-9a-f-]{36})[^\n]*systemd\.hostname=(\S+)", data)
                boots += [(boot.decode(), machine.decode()) for boot, machine in found]
    wire.recv()
    wire.send((offered, statuses, time.monotonic() - began))
    with contextlib.suppress(EOFError):
        wire.recv()


def _request(others: Sequence[Identity], boots: Sequence[tuple[str, str]], number: int) -> bytes:
    """Half scripts; of the rest nine events to a health report of 24 KiB, of boots that the flood was given."""
    if number % 2 == 0 or not boots:
        return f"GET {boot_path(others[number // 2 % len(others)])} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    boot, machine = boots[number // 2 % len(boots)]
    what, body = "events", {"machine": machine, "phase": "Failed", "detail": f"{number} ".ljust(280, "x")}
    text = json.dumps(body)
    if number % 20 == 1:
        check = {"status": "pass", "severity": "major", "summary": "x" * 280, "ms": 1, "facts": {}}
        checks = [{"name": f"check-{n}", **check} for n in range(64)]
        what, text = "health", json.dumps({"schema": 1, "machine": machine, "taken_ms": 1, "checks": checks})
    return f"POST /v1/boots/{boot}/{what} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()
