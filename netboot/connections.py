"""Connections of the two servers that machines speak to, on aiohttp: counted, bounded, and their bodies with them.

Who is let in is `netboot.admission`'s; deadlines are each server's own.
"""

import asyncio
import errno
import logging
import resource
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from netboot.addresses import plain_address
from netboot.admission import Gate, Seat

log = logging.getLogger(__name__)

LONGEST_LINE = 4096
"""Bytes of a request line; an honest one has fewer than 500."""
LONGEST_HEADER = 4096
MOST_HEADERS = 64
READ_BUFFER = 16 * 1024
LINGER_SECONDS = 1.0
"""How long an unwanted body is read after the answer, so that the client gets to see that answer."""
KEPT_FILES = 48
"""Descriptors that a server needs besides those of its connections."""
FILES_EACH = 5
"""For each connection admitted: itself, a file and a second one of its socket while that is sent; and one told to come
back, one in the batch that was just accepted."""
ACCEPT_AT_ONCE = 64
SHORTAGE_SECONDS = 60.0
UNREADABLE = "not an HTTP request, or its first line or headers are too long"


class Begun(NamedTuple):
    """What happened on a connection before it was aiohttp's: whether it `asked` for something, and was answered; bytes
    that were `received` and not answered."""

    asked: bool = False
    received: bytes = b""


class Connection(RequestHandler):
    """One client's connection; `peer` is its address, fit for a log line and a JSON string."""

    __slots__ = ("asked", "begun", "limited", "peer", "seat")

    limited: "Limited"
    seat: Seat
    peer: str
    asked: bool
    """Whether a request of it has come."""
    begun: "Begun"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it, where nobody has; what is far beyond the limits does not even get a request read."""
        stream, self.asked = cast(asyncio.Transport, transport), self.begun.asked
        if not hasattr(self, "seat"):
            peername = transport.get_extra_info("peername")
            self.seat = Seat(plain_address(str(peername[0]) if peername else ""), stream.abort)
            if self.limited.gate.enter(self.seat) == "cut":
                stream.abort()
        self.peer, self.seat.end = self.seat.address, stream.abort
        if not stream.is_closing():
            super().connection_made(transport)

    @property
    def pipelines(self) -> bool:
        """Whether it has asked for more than the request that is being answered."""
        return bool(self._messages)

    def gone(self) -> bool:
        """Whether there is nobody to answer any more."""
        return self.seat.left

    def connection_lost(self, exc: BaseException | None) -> None:
        """Make room for the next one; called by asyncio, once for each connection."""
        self.limited.gate.leave(self.seat)
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
        answer = self.limited.refusal(status, "internal error" if status >= 500 else UNREADABLE)
        answer.force_close()
        return answer


class Limited(web.Server):
    """aiohttp's low-level server (no router) with our connections and limits.

    `refusal(status, line)`: the answer to what `handler` never sees. `idle_seconds`: for a whole head, and between two.
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        gate: Gate,
        idle_seconds: float,
        refusal: Callable[[int, str], web.StreamResponse],
    ) -> None:
        super().__init__(
            self._served,
            access_log=None,
            keepalive_timeout=idle_seconds,
            tcp_keepalive=False,
            read_bufsize=READ_BUFFER,
            lingering_time=LINGER_SECONDS,
            auto_decompress=False,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_HEADER,
            max_headers=MOST_HEADERS,
        )
        self._handler, self.gate, self.refusal = handler, gate, refusal

    def __call__(self) -> Connection:
        """The protocol of a connection that was just accepted; called by asyncio."""
        connection = Connection(self, loop=self._loop, **self._kwargs)
        connection.limited, connection.begun = self, Begun()
        return connection

    def seated(self, seat: Seat, begun: Begun | None = None) -> Connection:
        """The protocol of a connection that has entered the gate already."""
        connection = self()
        connection.seat, connection.begun = seat, begun or connection.begun
        return connection

    def unasked(self) -> int:
        """How many connections there are that have asked for nothing yet."""
        return sum(not cast(Connection, connection).asked for connection in self.connections)

    async def _served(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = connection_of(request)
        connection.asked, seat = True, connection.seat
        self.gate.serve(seat)
        try:
            return await self._handler(request)
        finally:
            self.gate.wait(seat)


def connection_of(request: web.BaseRequest) -> Connection:
    """The connection that a request came on."""
    return cast(Connection, request.protocol)


async def read_body(request: web.BaseRequest, longest: int) -> bytes | None:
    """The body of a request; None: it is too long (told before more than a buffer of it was taken). Until it is there,
    its connection waits.

    Raises:
        aiohttp.web.RequestPayloadError, aiohttp.http_exceptions.HttpProcessingError: it is not framed as HTTP has it.
    """
    connection = connection_of(request)
    connection.limited.gate.wait(connection.seat)
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > longest:
            return None
    connection.limited.gate.serve(connection.seat)
    return bytes(body)


def hang_up(sock: socket.socket) -> None:
    """End a connection whose descriptor is for somebody else to close."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


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
        else:
            self.say(error)

    def say(self, error: OSError) -> None:
        """In the log, at most once a minute."""
        if self._monotonic() - self._told >= SHORTAGE_SECONDS:
            self._told = self._monotonic()
            log.error("no new connection can be taken: %s; they wait (ulimit -n)", error.strerror)


def allow_files(connections: int) -> None:
    """Have as many descriptors as so many connections need; where that is not permitted, fewer are let in, and the log
    says so."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = KEPT_FILES + FILES_EACH * connections
    if most < needed:
        words = "the limit of open files is %d: at most %d connections at once, and not %d (ulimit -n, LimitNOFILE)"
        log.warning(words, most, _within(most), connections)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, needed), most), most))


def connections_for(wanted: int) -> int:
    """How many of so many connections this process's descriptors are for."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(wanted, _within(files))


def _within(files: int) -> int:
    return max(1, (files - KEPT_FILES) // FILES_EACH)
