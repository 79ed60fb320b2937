"""Clients that misbehave: readers that read nothing, senders that never finish. One process holds them all.

They come from many addresses of loopback, so that a cap per address does not send them away at once, and those that
the service ends come back: what is measured is a service that has them all the time.
"""

import contextlib
import functools
import select
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection

from bench.apart import worker_processes
from bench.serving import HOST, BenchError

READERS = 1000
SENDERS = 500
_ADDRESSES = 250
_PAUSE = 0.25
"""Seconds after which one that was sent away comes back."""


@dataclass(frozen=True)
class Held:
    """How many are attached right now, and how many the service has ended so far."""

    readers: int
    senders: int
    ended: int


class _Crowd:
    """The sockets, by file descriptor, with the number of the abuser that each belongs to."""

    def __init__(self, port: int, path: str) -> None:
        self._port = port
        # Half of the senders are slow with their headers, half with their body.
        event = b"POST /v1/boots/00000000-0000-8000-8000-000000000000/events HTTP/1.1\r\nHost: bench\r\n"
        self._openings = [f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()] * READERS
        self._openings += [event, event + b"Content-Type: application/json\r\nContent-Length: 900\r\n\r\n{"] * (
            SENDERS // 2
        )
        self._held: dict[int, tuple[int, socket.socket]] = {}
        self._waiting = [(0.0, number) for number in range(len(self._openings))]
        self._poll = select.epoll()
        self.ended = 0

    def step(self) -> None:
        """Let those in whose time has come; notice those that were ended."""
        now = time.monotonic()
        due = [number for at, number in self._waiting if at <= now]
        self._waiting = [(at, number) for at, number in self._waiting if at > now]
        for number in due:
            self._attach(number)
        for descriptor, _ in self._poll.poll(0.05):
            number, gone = self._held.pop(descriptor)
            self._poll.unregister(descriptor)
            gone.close()
            self.ended += 1
            self._waiting.append((now + _PAUSE, number))

    def trickle(self) -> None:
        """Every slow sender sends one more byte."""
        for number, connection in self._held.values():
            if number >= READERS:
                with contextlib.suppress(OSError):
                    connection.send(b"x")

    def held(self) -> Held:
        """Who is attached."""
        readers = sum(number < READERS for number, _ in self._held.values())
        return Held(readers, len(self._held) - readers, self.ended)

    def _attach(self, number: int) -> None:
        connection = socket.socket()
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.bind((f"127.66.0.{number % _ADDRESSES + 1}", 0))
            connection.settimeout(5)
            connection.connect((HOST, self._port))
            connection.send(self._openings[number])
            connection.setblocking(False)
        except OSError:
            connection.close()
            self._waiting.append((time.monotonic() + _PAUSE, number))
            return
        self._held[connection.fileno()] = (number, connection)
        # Data that arrives is not looked at; only the service's end of the connection is.
        self._poll.register(connection.fileno(), select.EPOLLRDHUP)


def _run(port: int, path: str, wire: "Connection[object, object]") -> None:
    crowd = _Crowd(port, path)
    last = 0.0
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            crowd.step()
            if time.monotonic() - last > 1:
                crowd.trickle()
                last = time.monotonic()
            if wire.poll(0):
                wire.recv()
                wire.send(crowd.held())


class Abuse:
    """The crowd's process, from outside."""

    def __init__(self, wire: "Connection[object, object]") -> None:
        self._wire = wire

    def held(self) -> Held:
        """Who is attached right now."""
        self._wire.send("held")
        answer = self._wire.recv()
        assert isinstance(answer, Held)
        return answer


@contextlib.contextmanager
def attached(port: int, path: str, *, wait: float = 20.0) -> Iterator[Abuse]:
    """Attach the crowd to a server; it goes with the block.

    Raises:
        BenchError: nine of ten could not be attached in `wait` seconds.
    """
    with worker_processes(1, functools.partial(_run, port, path)) as [pipe]:
        abuse, deadline = Abuse(pipe), time.monotonic() + wait
        while (held := abuse.held()).readers < READERS * 0.9 or held.senders < SENDERS * 0.9:
            if time.monotonic() > deadline:
                raise BenchError(f"the service keeps its abusers out: attached after {wait:.0f} s: {held}")
            time.sleep(0.1)
        yield abuse
