"""How connections of join begin: accepted, waited for without more than their descriptor, led through the handshake.

Nothing here costs a thread, and every stage has an end: the first byte and the handshake here, the head by aiohttp's
keep-alive timer, body and answer in `netboot.web.join.server`.
"""

import asyncio
import logging
import socket
from contextlib import suppress
from functools import partial

from netboot.addresses import plain_address
from netboot.admission import Gate, Seat
from netboot.connections import Limited
from netboot.web.join.tls import Certificate

log = logging.getLogger(__name__)

FIRST_BYTE_SECONDS = 3.0
HANDSHAKE_SECONDS = 3.0
CLOSE_SECONDS = 1.0
"""For the other end's part of TLS' farewell."""
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
                log.warning("no connection can be accepted: %s", error.strerror)
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
        seat.end = partial(self._end_silent, sock, seat)
        timer = self._loop.call_later(FIRST_BYTE_SECONDS, seat.end)
        self._loop.add_reader(sock.fileno(), self._spoken, sock, seat, timer)

    def _end_silent(self, sock: socket.socket, seat: Seat) -> None:
        """End one that has said nothing, whoever asks for it: its timer, or one that needs the room."""
        if sock.fileno() >= 0:
            self._loop.remove_reader(sock.fileno())
            sock.close()
        self._gate.leave(seat)

    def _spoken(self, sock: socket.socket, seat: Seat, timer: asyncio.TimerHandle) -> None:
        timer.cancel()
        self._loop.remove_reader(sock.fileno())
        seat.end = partial(_hang_up, sock)
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


def _hang_up(sock: socket.socket) -> None:
    """End a handshake: it is its own transport's to close the descriptor."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
