"""Clients that misbehave cost others nothing: connections are counted, in all and per address, and have deadlines.

Who ends what:
- idle connections and incomplete headers: aiohttp's keep-alive timer (`idle_seconds`; data that trickles in does not
  move it);
- readers that stand still: the kernel, by TCP_USER_TIMEOUT on the listening socket, which accepted ones inherit
  (tcp(7); it also counts while the reader's window is zero);
- readers of files that dribble: `transfers`;
- slow bodies: `events`.
"""

import asyncio
import errno
import logging
import resource
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from netboot.addresses import plain_address
from netboot.boot import answers
from netboot.config import Provisioning

log = logging.getLogger(__name__)

LONGEST_LINE = 4096
"""Bytes of a request line; an honest one has fewer than 500."""
LONGEST_HEADER = 4096
MOST_HEADERS = 64
READ_BUFFER = 16 * 1024
LINGER_SECONDS = 1.0
"""How long an unwanted body is read after the answer, so that the client gets to see that answer."""
KEPT_FILES = 48
"""Descriptors that a boot server needs besides those of its connections."""
FILES_EACH = 5
"""For each connection admitted: itself, a file and a second one of its socket while that is sent; and one told to come
back, one in the batch that was just accepted."""
ACCEPT_AT_ONCE = 64
SHORTAGE_SECONDS = 60.0
TOLD_TO_COME_BACK = 2
"""Up to so many times a limit, the excess is told to come back; beyond, it is cut without a word."""


class Gate:
    """Counts this process's connections. `most` in all, `most_each` per address."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._addresses: dict[str, int] = {}
        self.open = 0
        self.refused = 0

    def enter(self, address: str) -> str:
        """Count a connection: `admitted`, `excess` (tell it to come back) or `cut`; every one has to `leave`."""
        self.open += 1
        of_address = self._addresses[address] = self._addresses.get(address, 0) + 1
        if self.open <= self._most and of_address <= self._most_each:
            return "admitted"
        self.refused += 1
        within = self.open <= TOLD_TO_COME_BACK * self._most and of_address <= TOLD_TO_COME_BACK * self._most_each
        return "excess" if within else "cut"

    def leave(self, address: str) -> None:
        """Count a connection out that `enter` counted in, whatever that returned."""
        self.open -= 1
        left = self._addresses[address] - 1
        if left:
            self._addresses[address] = left
        else:
            del self._addresses[address]


class Connection(RequestHandler):
    """One client's connection; `peer` is its address, fit for a log line and a JSON string."""

    __slots__ = ("admitted", "asked", "gate", "peer")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it; what is far beyond the limits does not even get a request read."""
        self.asked = False
        self.gate = cast("Limited", self._manager).gate
        peername = transport.get_extra_info("peername")
        self.peer = plain_address(str(peername[0]) if peername else "")
        state = self.gate.enter(self.peer)
        self.admitted = state == "admitted"
        if state == "cut":
            cast(asyncio.Transport, transport).abort()
        else:
            super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Make room for the next one; called by asyncio, once for each connection."""
        self.gate.leave(self.peer)
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it may hold what a stranger sent
    ) -> web.StreamResponse:
        """Answer what is not HTTP, and too long for us, in a line; a flood of it does not fill the log."""
        if isinstance(exc, ConnectionError):
            raise exc  # the client has gone, and nobody is left to answer
        if status >= 500:
            log.error("defect: a request was not handled", exc_info=exc)
        else:
            log.debug("%s sent what cannot be read: %s", self.peer, exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun already")
        line = "internal error" if status >= 500 else "not an HTTP request, or its first line or headers are too long"
        answer = answers.text(status, line)
        answer.force_close()
        return answer


class Limited(web.Server):
    """aiohttp's low-level server (no router) with our connections and limits."""

    def __init__(
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], gate: Gate, idle_seconds: float
    ) -> None:
        super().__init__(
            handler,
            access_log=None,
            keepalive_timeout=idle_seconds,
            tcp_keepalive=False,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_HEADER,
            max_headers=MOST_HEADERS,
            read_bufsize=READ_BUFFER,
            lingering_time=LINGER_SECONDS,
            auto_decompress=False,
        )
        self.gate = gate

    def __call__(self) -> Connection:
        """The protocol of a connection that was just accepted; called by asyncio."""
        return Connection(self, loop=self._loop, **self._kwargs)

    def unasked(self) -> int:
        """How many connections there are that have asked for nothing yet."""
        return sum(not cast(Connection, connection).asked for connection in self.connections)


class Shortage:
    """Handler of what an event loop cannot give anybody else. Where the machine has no more files or memory for a new
    connection, asyncio tries again after a second; that is said once a minute, and not for each try."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._told = float("-inf")

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (
            errno.EMFILE,
            errno.ENFILE,
            errno.ENOBUFS,
            errno.ENOMEM,
        ):
            loop.default_exception_handler(context)
        elif self._monotonic() - self._told >= SHORTAGE_SECONDS:
            self._told = self._monotonic()
            log.error("no new connection can be taken: %s; they wait (ulimit -n)", error.strerror)


def connection_of(request: web.BaseRequest) -> Connection:
    """The connection that a request came on."""
    return cast(Connection, request.protocol)


def prepare_listener(listener: socket.socket, limits: Provisioning) -> None:
    """Options that every accepted connection inherits."""
    listener.setblocking(False)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(limits.send_stall_seconds * 1000))


def gate_of(limits: Provisioning) -> Gate:
    """One worker's limits: its share of the connections in all, and no more than its files are for; those of one
    address may all come to one worker."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Gate(min(_share(limits), _connections(files)), limits.max_connections_per_address)


def allow_files(limits: Provisioning) -> None:
    """Have as many descriptors as this worker's connections need; where that is not permitted, it has fewer of them,
    which is said in the log."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = KEPT_FILES + FILES_EACH * _share(limits)
    if most < needed:
        words = "the limit of open files is %d: at most %d connections at once, and not %d (ulimit -n, LimitNOFILE)"
        log.warning(words, most, _connections(most), _share(limits))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, needed), most), most))


def _share(limits: Provisioning) -> int:
    return -(-limits.max_connections // limits.workers)


def _connections(files: int) -> int:
    return max(1, (files - KEPT_FILES) // FILES_EACH)
