"""New connections of a boot server. A machine makes one for each request, so what one costs is what a boot costs.

They are accepted in batches. Where the first thing that came on one is a whole request for a script, and nothing else,
it is answered on the bare socket: no transport, no protocol, no entry in the selector (docs/decisions/037); and where
it has to wait for nothing but the disk, no task (docs/decisions/089). Every other connection goes to aiohttp with what
was read of it, and so does one that stays open after its first script.
"""

import asyncio
import logging
import socket
from collections.abc import Coroutine
from contextlib import suppress
from functools import lru_cache, partial
from socket import SocketType

from netboot.addresses import plain_address
from netboot.admission import Seat
from netboot.boot.answers import PreparedResponse
from netboot.boot.app import App
from netboot.boot.heads import Head, Heads
from netboot.boot.scripts import Written
from netboot.connections import ACCEPT_AT_ONCE, READ_BUFFER, Begun, Limited, Shortage, hang_up

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


class Acceptor:
    """Takes the connections of one listening socket, in the event loop in which it was made."""

    def __init__(self, listener: socket.socket, server: Limited, app: App, shortage: Shortage) -> None:
        self.listener, self._server, self._app, self._shortage = listener, server, app, shortage
        self._loop = asyncio.get_running_loop()
        self._heads = Heads(self._loop)
        self._family, self._type, self._proto = int(listener.family), int(listener.type), listener.proto
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._hand_over_timer: asyncio.TimerHandle | None = None
        self._silent: dict[SocketType, tuple[Seat, float]] = {}
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
        """Connections that are waited for here, or on their way to aiohttp; requests are counted by `App`."""
        return len(self._silent) + len(self._tasks)

    def _accept(self) -> None:
        for _ in range(ACCEPT_AT_ONCE):
            try:
                # What `accept` does without its second look at family, type and descriptor: half of its time.
                descriptor, client = self.listener._accept()  # type: ignore[attr-defined]
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue
            except OSError as error:
                self._shortage.say(error)
                self._loop.remove_reader(self.listener.fileno())
                self._timer = self._loop.call_later(FULL_SECONDS, self.open)
                return
            sock = SocketType(self._family, self._type, self._proto, descriptor)
            self._begin(sock, Seat(_plain(str(client[0])), partial(hang_up, sock)))

    def _begin(self, sock: SocketType, seat: Seat) -> None:
        if self._server.gate.enter(seat) == "cut":
            self._end(sock, seat)
        elif not self._look(sock, seat):
            if self._hand_over_timer is None:
                self._hand_over_timer = self._loop.call_later(SILENT_SECONDS, self._hand_over_silent)
            self._silent[sock] = seat, self._loop.time()
            self._loop.add_reader(sock.fileno(), self._heard, sock)

    def _look(self, sock: SocketType, seat: Seat) -> bool:
        """Look at what there is of its first request; False: nothing yet."""
        if seat.left:  # to make room: what had come by then can still be read, and is nobody's any more
            self._end(sock, seat)
            return True
        try:
            received = sock.recv(READ_BUFFER, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            received = b""
        head = self._heads.read(received)
        if head is not None:
            self._server.gate.serve(seat)
            self._answer(sock, seat, head, received)
        elif received:
            self._do(self._hand_over(sock, seat, Begun(received=received)))
        else:
            self._end(sock, seat)
        return True

    def _heard(self, sock: SocketType) -> None:
        """It says something, or has ended, or was ended to make room."""
        seat = self._no_longer_silent(sock)
        if not self._look(sock, seat):  # the kernel changed its mind (select(2), bugs)
            self._do(self._hand_over(sock, seat, Begun()))

    def _no_longer_silent(self, sock: SocketType) -> Seat:
        self._loop.remove_reader(sock.fileno())
        return self._silent.pop(sock)[0]

    def _hand_over_silent(self) -> None:
        long_since = self._loop.time() - SILENT_SECONDS
        for sock in [sock for sock, (_, since) in self._silent.items() if since <= long_since]:
            self._do(self._hand_over(sock, self._no_longer_silent(sock), Begun()))
        self._hand_over_timer = self._loop.call_later(SILENT_SECONDS, self._hand_over_silent) if self._silent else None

    def _answer(self, sock: SocketType, seat: Seat, head: Head, received: bytes) -> None:
        try:
            written = self._app.write_script(head.query, seat)
        except Exception as error:
            log.debug("a script failed: %s", error, exc_info=True)
            self._do(self._failed(sock, seat, received))
            return
        if written is None:
            self._do(self._answer_later(sock, seat, head, received))
        else:
            written.done.add_done_callback(lambda _: self._disk_answered(sock, seat, head, received, written))

    def _disk_answered(self, sock: SocketType, seat: Seat, head: Head, received: bytes, written: Written) -> None:
        try:
            response = self._app.script_written(written, seat)
        except Exception as error:
            log.debug("a script failed: %s", error, exc_info=True)
            self._do(self._failed(sock, seat, received))
        else:
            self._send(sock, seat, head, response)

    async def _answer_later(self, sock: SocketType, seat: Seat, head: Head, received: bytes) -> None:
        try:
            response = await self._app.script(head.query, seat, partial(_gone, sock, seat))
        except ConnectionError:
            self._end(sock, seat)
        except Exception as error:
            log.debug("a script failed: %s", error, exc_info=True)
            await self._failed(sock, seat, received)
        else:
            self._send(sock, seat, head, response)

    async def _failed(self, sock: SocketType, seat: Seat, received: bytes) -> None:
        """aiohttp's way has an answer to each failure."""
        self._server.gate.wait(seat)
        await self._hand_over(sock, seat, Begun(received=received))

    def _send(self, sock: SocketType, seat: Seat, head: Head, response: PreparedResponse) -> None:
        if head.should_close:
            response.force_close()
        whole, sent = response.as_sent(head.version), 0
        with suppress(OSError):  # of whoever has gone, or a machine without memory
            sent = sock.send(whole, socket.MSG_DONTWAIT)
        if response.keep_alive and sent == len(whole):
            self._server.gate.wait(seat)
            self._do(self._hand_over(sock, seat, Begun(asked=True)))
        else:
            self._end(sock, seat)

    async def _hand_over(self, sock: SocketType, seat: Seat, begun: Begun) -> None:
        """The rest of the connection is aiohttp's; of one that was ended meanwhile, to make room, nothing is."""
        if seat.left:
            self._end(sock, seat)
            return
        stream = socket.socket(fileno=sock.detach())
        stream.setblocking(False)
        seat.end = partial(hang_up, stream)
        with suppress(OSError):
            connect = self._loop.connect_accepted_socket(partial(self._server.seated, seat, begun), stream)
            transport, connection = await connect
            # Not before: a pause of reading that comes earlier is undone when the transport begins to read.
            if begun.received and not (seat.left or transport.is_closing()):
                connection.data_received(begun.received)
            return
        self._end(stream, seat)

    def _end(self, sock: SocketType, seat: Seat) -> None:
        sock.close()
        self._server.gate.leave(seat)

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _gone(sock: SocketType, seat: Seat) -> bool:
    """Whether there is nobody to answer any more; nothing is read of what may have come meanwhile."""
    return seat.left or sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) != _ESTABLISHED
