"""Clients of join that hold connections and get nowhere, in one process; who is ended comes back."""

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

from bench.apart import worker_processes
from bench.serving import BenchError
from lab.own_network import IP_FREEBIND

COUNT = 1000
ADDRESSES = 64
KINDS = ("nothing", "a byte", "a slow handshake", "half a head", "half a body", "no reading")
_PAUSE = 1.0
"""Seconds after which one that was ended comes back."""
_AT_ONCE = 20
"""That come before the others go on: a handshake has to be quicker than its deadline."""
_HEAD = b"POST /v1/join/hello HTTP/1.1\r\nHost: bench\r\n"
_OPENINGS = {
    "half a head": _HEAD,
    "half a body": _HEAD + b"Content-Length: 16000\r\n\r\n{",
    "no reading": b"GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n" * 100,
}
"""What is said once the handshake is through."""


@dataclass(frozen=True)
class Target:
    """Where join listens, from which prefix the besiegers come, and who is believed there (PEM)."""

    host: str
    port: int
    prefix: str
    authorities: str


def connected(target: Target, address: str, receive: int = 0) -> socket.socket:
    """A connection to join from an address.

    Raises:
        OSError: it is not let in.
    """
    sock = socket.socket(socket.AF_INET6 if ":" in target.host else socket.AF_INET)
    try:
        sock.setsockopt(socket.SOL_IP, IP_FREEBIND, 1)
        if receive:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        sock.settimeout(5)
        sock.bind((address, 0))
        sock.connect((target.host, target.port))
    except OSError:
        sock.close()
        raise
    return sock


class _Besieger:
    """One connection. `step` when there is something to read, `trickle` once a second; OSError: it was ended."""

    def __init__(self, target: Target, context: ssl.SSLContext, kind: str, number: int) -> None:
        self.number, self._kind = number, kind
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        self._hello = b""
        self.sock = connected(target, f"{target.prefix}{number % ADDRESSES + 1}", 4096)
        self.sock.setblocking(False)
        if kind != "nothing":
            with contextlib.suppress(ssl.SSLWantReadError):
                self._tls.do_handshake()
            self._hello = self._outgoing.read()
            self.sock.send(self._hello if kind in _OPENINGS else self._hello[:1])
        self.reads = kind in _OPENINGS
        self._said = 1

    def step(self) -> None:
        self._incoming.write(self.sock.recv(65536))
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        else:
            self._tls.write(_OPENINGS[self._kind])
            self.reads = False
        self.sock.send(self._outgoing.read())

    def trickle(self) -> None:
        if self._kind == "a slow handshake":
            self.sock.send(self._hello[self._said : self._said + 1])
            self._said += 1
        elif self._kind in _OPENINGS and not self.reads:
            self._tls.write(_OPENINGS[self._kind] if self._kind == "no reading" else b"x")
            self.sock.send(self._outgoing.read())


class _Siege:
    """All of them, by file descriptor."""

    def __init__(self, target: Target, kind: str) -> None:
        self._target, self._kind, self._context = target, kind, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE
        self._held: dict[int, _Besieger] = {}
        self._waiting = [(0.0, number) for number in range(COUNT)]
        self._poll = select.epoll()
        self._trickled = time.monotonic()

    def step(self) -> int:
        """Let those in whose time has come, let all go on; how many hold a connection."""
        now = time.monotonic()
        due = [each for each in self._waiting if each[0] <= now][:_AT_ONCE]
        self._waiting = [each for each in self._waiting if each not in due]
        for _, number in due:
            try:
                each = _Besieger(self._target, self._context, self._kind, number)
            except OSError:
                self._waiting.append((now + _PAUSE, number))
                continue
            self._held[each.sock.fileno()] = each
            self._poll.register(each.sock.fileno(), select.EPOLLRDHUP | (select.EPOLLIN if each.reads else 0))
        for descriptor, events in self._poll.poll(0.02):
            self._let(descriptor, gone=bool(events & ~select.EPOLLIN))
        if now - self._trickled > 1:
            self._trickled = now
            for descriptor in list(self._held):
                self._let(descriptor, trickles=True)
        return len(self._held)

    def _let(self, descriptor: int, *, gone: bool = False, trickles: bool = False) -> None:
        each = self._held[descriptor]
        try:
            if not gone:
                (each.trickle if trickles else each.step)()
                self._poll.modify(descriptor, select.EPOLLRDHUP | (select.EPOLLIN if each.reads else 0))
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._poll.unregister(descriptor)
        del self._held[descriptor]
        each.sock.close()
        self._waiting.append((time.monotonic() + _PAUSE, each.number))


def _run(target: Target, kind: str, wire: "Connection[object, object]") -> None:
    siege = _Siege(target, kind)
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            held = siege.step()
            if wire.poll(0):
                wire.recv()
                wire.send(held)


@contextlib.contextmanager
def besieged(target: Target, kind: str, least: int, *, wait: float = 60.0) -> Iterator[None]:
    """A siege of one kind, until the block ends; it starts when `least` hold a connection at once.

    Raises:
        BenchError: so many never did.
    """
    with worker_processes(1, partial(_run, target, kind)) as [wire]:
        deadline, held = time.monotonic() + wait, 0
        while held < least:
            if time.monotonic() > deadline:
                raise BenchError(f"no siege by {kind!r}: {held} connections are held after {wait:.0f} s")
            time.sleep(0.1)
            wire.send("held")
            answer = wire.recv()
            assert isinstance(answer, int)
            held = answer
        yield
