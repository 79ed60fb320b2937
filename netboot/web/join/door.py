"""How connections of join begin: accepted, waited for without more than their descriptor, led through the handshake.

Nothing here costs a thread, and every stage has an end: the ClientHello and the handshake here, the head by aiohttp's
keep-alive timer, body and answer in `netboot.web.join.server`.
"""

import asyncio
import socket
from asyncio import sslproto
from contextlib import suppress
from functools import partial

from netboot.addresses import plain_address
from netboot.admission import Gate, Seat
from netboot.connections import Limited, Shortage, hang_up
from netboot.web.tls import Certificate

sslproto.SSLProtocol.max_size = 16 * 1024
"""What asyncio takes off the wire at once, and keeps in zeroed memory for each connection: its own 256 KiB would be 256
MiB for a thousand who only hold theirs. Undocumented; a test measures what a connection costs."""

HELLO_SECONDS = 3.0
"""For a whole ClientHello: until it is there, a connection is a descriptor and a timer."""
HANDSHAKE_SECONDS = 3.0
"""For the rest of the handshake."""
CLOSE_SECONDS = 1.0
"""For the other end's part of TLS' farewell."""
RECORD = 5
"""Bytes of a record's head: its type, two of the version, two of the length (RFC 8446, 5.1)."""
HANDSHAKE = 22
"""Type of the record that a ClientHello comes in."""
SHORTEST_HELLO = 43
"""Its version, random, and three empty lists (RFC 8446, 4.1.2), in a message of four bytes more."""
LONGEST_HELLO = 4096
"""An honest one has 300 to 2,000 bytes."""
AT_ONCE = 32
"""Connections accepted before others get their turn; those behind them wait in the kernel's queue."""
FULL_SECONDS = 0.5
"""Between tries, where there is no descriptor left."""


class Door:
    """Connections of one listening socket, each handed to `limited` once its handshake is through."""

    def __init__(self, limited: Limited, gate: Gate, certificate: Certificate) -> None:
        self._limited, self._gate, self._certificate = limited, gate, certificate
        self._loop = asyncio.get_running_loop()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._shortage = Shortage()

    def open(self, listener: socket.socket) -> None:
        """Take connections from now on."""
        self._loop.add_reader(listener.fileno(), self._accept, listener)

    def close(self, listener: socket.socket) -> None:
        """Take no more."""
        self._loop.remove_reader(listener.fileno())
        if self._timer is not None:
            self._timer.cancel()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                sock, client = listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue
            except OSError as error:  # no descriptor, no memory: soon there may be
                self._shortage.say(error)
                self._loop.remove_reader(listener.fileno())
                self._timer = self._loop.call_later(FULL_SECONDS, self.open, listener)
                return
            self._seat(sock, plain_address(str(client[0])))

    def _seat(self, sock: socket.socket, address: str) -> None:
        sock.setblocking(False)
        seat = Seat(address, sock.close)
        if self._gate.enter(seat) != "admitted":
            self._gate.leave(seat)
            sock.close()
            return
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, RECORD)
        seat.end = partial(self._end_silent, sock, seat)
        timer = self._loop.call_later(HELLO_SECONDS, seat.end)
        self._loop.add_reader(sock.fileno(), self._readable, sock, seat, timer)

    def _end_silent(self, sock: socket.socket, seat: Seat) -> None:
        """End one whose ClientHello is not there, whoever asks for it: its timer, or one that needs the room."""
        if sock.fileno() >= 0:
            self._loop.remove_reader(sock.fileno())
            sock.close()
        self._gate.leave(seat)

    def _readable(self, sock: socket.socket, seat: Seat, timer: asyncio.TimerHandle) -> None:
        """A record's head is there; the kernel wakes us when the record is (SO_RCVLOWAT)."""
        head = b""
        with suppress(OSError):
            head = sock.recv(RECORD, socket.MSG_PEEK)
        length = int.from_bytes(head[3:])
        if len(head) < RECORD or head[0] != HANDSHAKE or not SHORTEST_HELLO <= length <= LONGEST_HELLO:
            timer.cancel()
            self._end_silent(sock, seat)
            return
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, RECORD + length)
        self._loop.add_reader(sock.fileno(), self._whole, sock, seat, timer)

    def _whole(self, sock: socket.socket, seat: Seat, timer: asyncio.TimerHandle) -> None:
        """The record is there, or the other end has gone."""
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        timer.cancel()
        self._loop.remove_reader(sock.fileno())
        seat.end = partial(hang_up, sock)
        handshake = self._loop.create_task(self._shake_hands(sock, seat))
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, sock: socket.socket, seat: Seat) -> None:
        with suppress(OSError):  # of those who do not, or leave
            await self._loop.connect_accepted_socket(
                partial(self._limited.seated, seat),
                sock,
                ssl=self._certificate.context(),
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=CLOSE_SECONDS,
            )
            return
        self._gate.leave(seat)
