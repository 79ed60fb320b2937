"""The join server's life: it listens in TLS, takes whole requests, has threads answer them, stops gracefully.

The application is Flask's and runs in threads, for it asks an apiserver and waits for the disk; everything that a
stranger can draw out happens before a thread is taken or after it was given back.
"""

import asyncio
import io
import json
import logging
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from flask import Flask
from werkzeug.wrappers import Response

from netboot.admission import Gate
from netboot.config import Join
from netboot.connections import Connection, Limited, connection_of, connections_for, read_body
from netboot.join.messages import LONGEST_ATTEST
from netboot.listeners import queued, take_no_more
from netboot.web.join.door import Door
from netboot.web.join.turns import Turns
from netboot.web.tls import Certificate

log = logging.getLogger(__name__)

THREADS = 32
HEAD_SECONDS = 5.0
"""For a whole head, and between two requests of one connection; and how long one waits that sends the next before it
has the answer."""
BODY_SECONDS = 10.0
TURN_SECONDS = 10.0
"""For a thread."""
WORK_SECONDS = 35.0
"""For a thread, and what that does, which asks an apiserver and waits for the disk. No agent waits longer: its calls
take 30 s at most (images/node/agent/net.py), and an answer before that would hide a token that was issued."""
ANSWER_SECONDS = 5.0
"""For taking the answer."""
UNSENT = 16 * 1024
"""Bytes that may wait for a reader, in our memory and again in the kernel's: an answer has a few thousand."""
LONGEST_DRAINED = 4 * 1024 * 1024
"""Of a body that is too long: a client that is cut while it sends never reads why."""
GRACE_SECONDS = 15.0
SETTLE_SECONDS = 0.1
"""For TCP's handshakes that are half done when the last connection was let in."""
QUIET_SECONDS = 3.0
"""For TLS and the first request of a connection that was made before the stop."""
BEAT_SECONDS = 1.0
TURNOVER_SPACING = 1 / 32
"""Where an address or a /64 has all of its places, 32 a second change hands: each time costs a handshake, and what
whoever gets in may ask. Of 512 places that turn over every two seconds it were 256."""


class JoinServer:
    """`make(stopping)` makes the application; `config`: its limits. In the event loop that it will run in."""

    def __init__(self, config: Join, certificate: Certificate, make: Callable[[Callable[[], bool]], Flask]) -> None:
        self._stop = asyncio.Event()
        self._application = make(self._stop.is_set)
        self._threads = ThreadPoolExecutor(THREADS, "request")
        self._gate, self._turns, self._in_flight = gate_of(config), Turns(THREADS), 0
        self._working: set[asyncio.Task[web.Response]] = set()
        self._limited = Limited(self._handle, self._gate, HEAD_SECONDS, _refused)
        self._door = Door(self._limited, self._gate, certificate)

    async def serve(self, listener: socket.socket, ready: Callable[[], None], beat: Callable[[], None]) -> None:
        """Until SIGTERM or SIGINT; `ready` is called once connections of `listener`, which listens, are taken; `beat`
        each second by the event loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        prepare_listener(listener)
        self._door.open(listener)
        ready()
        beating = loop.create_task(_beat_for_ever(beat))
        await self._stop.wait()
        await self._take_the_last(listener)
        self._door.close(listener)
        listener.close()
        deadline = loop.time() + GRACE_SECONDS
        while self._in_flight and loop.time() < deadline:
            await asyncio.sleep(0.02)
        if self._in_flight:
            log.warning("stopping with %d requests unanswered", self._in_flight)
        await self._limited.shutdown(1.0)
        self._threads.shutdown(wait=False, cancel_futures=True)
        beating.cancel()

    async def _take_the_last(self, listener: socket.socket) -> None:
        """Take every connection that the kernel has accepted for us, have it accept no more, and let them ask."""
        loop = asyncio.get_running_loop()
        until = loop.time() + QUIET_SECONDS
        take_no_more(listener)
        await asyncio.sleep(SETTLE_SECONDS)
        while loop.time() < until and (queued(listener) or self._is_asked_nothing()):
            await asyncio.sleep(0.01)

    def _is_asked_nothing(self) -> bool:
        """Whether there are connections that shake hands, or have sent no request yet."""
        return self._gate.open > len(self._limited.connections) or self._limited.unasked() > 0

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Of a whole head: what is being read of its body is in flight too."""
        connection = connection_of(request)
        self._in_flight += 1
        try:
            response = await self._asked(request, connection)
        finally:
            self._in_flight -= 1
        if connection.pipelines:  # no agent does: that is a flood, or one that does not read
            await asyncio.sleep(HEAD_SECONDS)
            response.force_close()
        return response

    async def _asked(self, request: web.BaseRequest, connection: Connection) -> web.StreamResponse:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _whole(request)
        except TimeoutError:
            return _refused(408, f"the body did not arrive within {BODY_SECONDS:g} seconds")
        except (web.RequestPayloadError, HttpProcessingError):
            return _refused(400, "the body is not framed as HTTP has it")
        response = await self._answered(_environ(request, body, connection.peer), connection.seat.network)
        self._gate.wait(connection.seat)
        await _sent(request, response)
        return response

    async def _answered(self, environ: dict[str, Any], network: str) -> web.Response:
        """The application's answer. A thread that is not through in time, for the disk or an apiserver stands still,
        keeps its turn until it is."""
        work = asyncio.get_running_loop().create_task(self._work(environ, network))
        self._working.add(work)
        work.add_done_callback(self._working.discard)
        done, _ = await asyncio.wait((work,), timeout=WORK_SECONDS)
        return work.result() if done else _refused(503, "cannot tell right now", "unavailable")

    async def _work(self, environ: dict[str, Any], network: str) -> web.Response:
        loop = asyncio.get_running_loop()
        try:
            async with self._turns.turn(network, TURN_SECONDS):
                return await loop.run_in_executor(self._threads, _run, self._application, environ)
        except TimeoutError:
            return _refused(503, "too many requests at once")


async def _beat_for_ever(beat: Callable[[], None]) -> None:
    while True:
        beat()
        await asyncio.sleep(BEAT_SECONDS)


def prepare_listener(listener: socket.socket) -> None:
    """Options that every accepted connection inherits."""
    listener.setblocking(False)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSENT)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(ANSWER_SECONDS * 1000))


def gate_of(config: Join) -> Gate:
    """The limits of one process; all together take `max_connections`."""
    most = connections_for(-(-config.max_connections // config.workers))
    return Gate(most, max(4, most // 8), max(4, most // 2), turnover_spacing=TURNOVER_SPACING)


async def _whole(request: web.BaseRequest) -> bytes:
    """The body, or a byte more of it than any may have; what comes behind that is taken off the wire, up to a bound."""
    body = await read_body(request, LONGEST_ATTEST)
    if body is not None:
        return body
    drained = 0
    async for piece in request.content.iter_any():
        drained += len(piece)
        if drained > LONGEST_DRAINED:
            break
    return bytes(LONGEST_ATTEST + 1)


async def _sent(request: web.BaseRequest, response: web.Response) -> None:
    """Send an answer, to one who takes it in time."""
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("whoever asked has gone")
    transport.set_write_buffer_limits(high=UNSENT)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await response.prepare(request)
            await response.write_eof()
            await request.writer.drain()
    except TimeoutError:
        transport.abort()
        raise ConnectionResetError("whoever asked does not take the answer") from None


def _environ(request: web.BaseRequest, body: bytes, peer: str) -> dict[str, Any]:
    """A request as WSGI has it (PEP 3333), of its headers with the id alone: nothing else here goes by them."""
    path, _, query = request.raw_path.partition("?")
    return {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(path, "latin-1"),
        "QUERY_STRING": query,
        "SERVER_NAME": "join",
        "SERVER_PORT": "443",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": peer,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        **({"HTTP_X_REQUEST_ID": given} if (given := request.headers.get("X-Request-ID")) is not None else {}),
    }


def _run(application: Flask, environ: dict[str, Any]) -> web.Response:
    """Ask the application; in a thread."""
    response = Response.from_app(application, environ, buffered=True)
    headers = [(name, value) for name, value in response.headers if name != "Content-Length"]
    return web.Response(status=response.status_code, body=response.get_data(), headers=headers)


def _refused(status: int, line: str, code: str = "") -> web.Response:
    """What the application never sees, in the one form of failures; the connection is of no more use."""
    usual, remedy = _REFUSALS[status]
    body = json.dumps({"error": {"code": code or usual, "message": line, "remedy": remedy}}).encode()
    again = {"Retry-After": "5"} if status == 503 else {}
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store", **again}
    answer = web.Response(status=status, body=body, headers=headers)
    answer.force_close()
    return answer


_REFUSALS = {
    400: ("bad-request", "correct the request"),
    408: ("too-slow", "send faster"),
    500: ("internal", "see the log of the service"),
    503: ("overloaded", "try again"),
}
