"""New connections of a boot server. A machine makes one for each request, so what one costs is what a boot costs.

They are accepted in batches. Where the first thing that came on one is a whole request for a script, and nothing else,
it is answered on the bare socket: no transport, no protocol, no entry in the selector. Every other connection goes to
aiohttp with what was read of it, and so does one that stays open after its first script. Heads are read by aiohttp's
own parser with the limits that it has there (docs/decisions/037).
"""

import asyncio
import logging
import socket
from collections.abc import Coroutine
from contextlib import suppress
from functools import lru_cache, partial

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD

from netboot.addresses import plain_address
from netboot.admission import Seat
from netboot.boot.app import SCRIPT, App
from netboot.connections import (
    ACCEPT_AT_ONCE,
    LONGEST_HEADER,
    LONGEST_LINE,
    MOST_HEADERS,
    READ_BUFFER,
    Begun,
    Limited,
    Shortage,
    hang_up,
)

log = logging.getLogger(__name__)

SILENT_SECONDS = 0.25
"""How long a new connection is waited for here; one that says nothing is then aiohttp's, which has its deadline."""
FULL_SECONDS = 1.0
"""Before the next try, where the machine has no descriptor or no memory for a connection."""
_ADDRESSES = 4096
"""Peers whose address is kept as it is written."""
_plain = lru_cache(_ADDRESSES)(plain_address)
_ESTABLISHED = b"\x01"
"""First byte of `TCP_INFO`: the state of a connection whose other end has neither closed nor reset it (tcp(7))."""
_BEGINS, _ENDS = f"GET {SCRIPT}".encode(), b"\r\n\r\n"


def script_asked_for(
    received: bytes, protocol: BaseProtocol, loop: asyncio.AbstractEventLoop
) -> RawRequestMessage | None:
    """The request for a script, where it is whole and all that was received, and is no more than a line and headers.

    `protocol`: anything that aiohttp's parser can belong to.
    """
    if not received.startswith(_BEGINS) or not received.endswith(_ENDS):
        return None
    parser = HttpRequestParser(
        protocol,
        loop,
        READ_BUFFER,
        max_line_size=LONGEST_LINE,
        max_field_size=LONGEST_HEADER,
        max_headers=MOST_HEADERS,
        auto_decompress=False,
    )
    try:
        requests, upgraded, rest = parser.feed_data(received)
    except HttpProcessingError:
        return None
    if len(requests) != 1 or upgraded or rest:
        return None
    message, payload = requests[0]
    alone = payload is EMPTY_PAYLOAD and not message.upgrade and not message.chunked
    return message if alone and message.path.partition("?")[0] == SCRIPT else None


class Acceptor:
    """Takes the connections of one listening socket, in the event loop in which it was made."""

    def __init__(self, listener: socket.socket, server: Limited, app: App, shortage: Shortage) -> None:
        self.listener, self._server, self._app, self._shortage = listener, server, app, shortage
        self._loop = asyncio.get_running_loop()
        self._heads = BaseProtocol(self._loop)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._hand_over_timer: asyncio.TimerHandle | None = None
        self._silent: dict[socket.socket, tuple[Seat, float]] = {}
        """Those that have said nothing yet, with the time from which on; the oldest first."""

    def open(self) -> None:
        """Take connections from now on."""
        self._loop.add_reader(self.listener.fileno(), self._accept)

    def close(self) -> None:
        """Take no more, and close the listening socket."""
        self._loop.remove_reader(self.listener.fileno())
        if self._timer is not None:
            self._timer.cancel()
        self.listener.close()

    def under_way(self) -> int:
        """Connections that are waited for or answered here, or on their way to aiohttp."""
        return len(self._silent) + len(self._tasks)

    def _accept(self) -> None:
        for _ in range(ACCEPT_AT_ONCE):
            try:
                sock, client = self.listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue
            except OSError as error:
                self._shortage.say(error)
                self._loop.remove_reader(self.listener.fileno())
                self._timer = self._loop.call_later(FULL_SECONDS, self.open)
                return
            sock.setblocking(False)
            self._begin(sock, Seat(_plain(str(client[0])), partial(hang_up, sock)))

    def _begin(self, sock: socket.socket, seat: Seat) -> None:
        if self._server.gate.enter(seat) == "cut":
            self._end(sock, seat)
        elif not self._look(sock, seat):
            if self._hand_over_timer is None:
                self._hand_over_timer = self._loop.call_later(SILENT_SECONDS, self._hand_over_silent)
            self._silent[sock] = seat, self._loop.time()
            self._loop.add_reader(sock.fileno(), self._heard, sock)

    def _look(self, sock: socket.socket, seat: Seat) -> bool:
        """Look at what there is of its first request; False: nothing yet."""
        if seat.left:  # to make room: what had come by then can still be read, and is nobody's any more
            self._end(sock, seat)
            return True
        try:
            received = sock.recv(READ_BUFFER)
        except BlockingIOError:
            return False
        except OSError:
            received = b""
        message = script_asked_for(received, self._heads, self._loop)
        if message is not None:
            self._server.gate.serve(seat)
            self._do(self._answer(sock, seat, message, received))
        elif received:
            self._do(self._hand_over(sock, seat, Begun(received=received)))
        else:
            self._end(sock, seat)
        return True

    def _heard(self, sock: socket.socket) -> None:
        """It says something, or has ended, or was ended to make room."""
        seat = self._no_longer_silent(sock)
        if not self._look(sock, seat):  # the kernel changed its mind (select(2), bugs)
            self._do(self._hand_over(sock, seat, Begun()))

    def _no_longer_silent(self, sock: socket.socket) -> Seat:
        self._loop.remove_reader(sock.fileno())
        return self._silent.pop(sock)[0]

    def _hand_over_silent(self) -> None:
        long_since = self._loop.time() - SILENT_SECONDS
        for sock in [sock for sock, (_, since) in self._silent.items() if since <= long_since]:
            self._do(self._hand_over(sock, self._no_longer_silent(sock), Begun()))
        self._hand_over_timer = self._loop.call_later(SILENT_SECONDS, self._hand_over_silent) if self._silent else None

    async def _answer(self, sock: socket.socket, seat: Seat, message: RawRequestMessage, received: bytes) -> None:
        try:
            response = await self._app.script(message.path.partition("?")[2], seat, partial(_gone, sock, seat))
        except ConnectionError:
            self._end(sock, seat)
            return
        except Exception as error:  # aiohttp's way has an answer to each
            log.debug("a script failed: %s", error, exc_info=True)
            self._server.gate.wait(seat)
            await self._hand_over(sock, seat, Begun(received=received))
            return
        if message.should_close:
            response.force_close()
        whole, sent = response.as_sent(message.version), 0
        with suppress(OSError):  # of whoever has gone, or a machine without memory
            sent = sock.send(whole)
        if response.keep_alive and sent == len(whole):
            self._server.gate.wait(seat)
            await self._hand_over(sock, seat, Begun(asked=True))
        else:
            self._end(sock, seat)

    async def _hand_over(self, sock: socket.socket, seat: Seat, begun: Begun) -> None:
        """The rest of the connection is aiohttp's."""
        with suppress(OSError):
            connect = self._loop.connect_accepted_socket(partial(self._server.seated, seat, begun), sock)
            transport, connection = await connect
            # Not before: a pause of reading that comes earlier is undone when the transport begins to read.
            if begun.received and not transport.is_closing():
                connection.data_received(begun.received)
            return
        self._end(sock, seat)

    def _end(self, sock: socket.socket, seat: Seat) -> None:
        sock.close()
        self._server.gate.leave(seat)

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _gone(sock: socket.socket, seat: Seat) -> bool:
    """Whether there is nobody to answer any more; nothing is read of what may have come meanwhile."""
    return seat.left or sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) != _ESTABLISHED
