"""Gunicorn's worker with threads, for clients of whom some send or read slowly, or not at all: a thread is taken once a
first byte has come, a request has an end, and so has an answer, and where threads run short, who keeps one longest
makes room."""

import logging
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

from netboot.web.errors import MEDIA_TYPE, TYPE, Problem

STALL_SECONDS = 5
"""How long a client may keep us waiting for its next bytes, or for taking ours."""
REQUEST_SECONDS = 15
"""For a whole request, from its first byte and with TLS's handshake: longer, and the connection ends where we wait for
more of it. And so long a client may have us wait, in all, while it takes one answer."""
RATE = 128 * 1024
"""Bytes of either that earn a second more: a list of EKs may have 64 MiB, over a slow line."""
PIECE = 16 * 1024
"""Bytes of an answer that are sent at once; after each it is seen what was taken."""
ROOM_SECONDS = 0.75
"""So long either may take in any case; where threads or connections run short, not longer than that and what it earned.
"""
LOOK_SECONDS = 0.1
"""Between two looks while threads run short."""
SAY_SECONDS = 60.0

log = logging.getLogger(__name__)


class Paced(socket.socket):
    """A socket that sends in pieces, so that it can be seen, and ended, how long its client takes for them."""

    pace: Callable[[Callable[[], int]], int] = staticmethod(lambda send: send())
    """Calls what sends a piece, and returns how much of it was sent."""

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send all of it, in pieces, each at that pace. Raises OSError, and what `pace` raises."""
        left = memoryview(data).cast("B")
        while left:
            left = left[self.pace(partial(self.send, left[:PIECE], flags)) :]


class Connection(TConn):  # type: ignore[misc] # gunicorn brings no types
    """A client's. `since`: when it was made, or its request, or its end, began (monotonic), and of an answer when it
    would have begun, if all the time were that of its client; `moved`: bytes since."""

    def __init__(self, worker: "Worker", *arguments: Any) -> None:
        super().__init__(*arguments)
        self._worker = worker
        self.begin()
        self._closed = False

    def begin(self) -> None:
        """Another wait for this client, with a time of its own."""
        self.since, self.moved = time.monotonic(), 0
        self._waited: float | None = None

    def init(self) -> None:
        """TLS, and a parser whose every read can be ended by the worker."""
        if self.initialized:
            return
        with self._worker.waiting(self):
            super().init()
        self.sock.pace = self.sent
        unreader = self.parser.unreader
        receive = unreader.chunk

        def chunk(size_hint: int | None = None) -> bytes:
            with self._worker.waiting(self):
                received: bytes = receive(size_hint)
            self.moved += len(received)
            return received

        unreader.chunk = chunk

    def sent(self, send: Callable[[], int]) -> int:
        """A piece of an answer: of the time that this takes, what its client has us wait is all that counts, so that a
        watch, which says something now and then, goes on for as long as it is listened to."""
        if self._waited is None:
            self._waited, self.moved = 0.0, 0
        self.since = time.monotonic() - self._waited
        with self._worker.waiting(self):
            count = send()
        self._waited = time.monotonic() - self.since
        self.moved += count
        return count

    def end(self) -> None:
        """Whoever waits for this client reads its end. (`SSLSocket.shutdown` would have others go on in plain text.)"""
        with suppress(OSError):  # it has ended by itself
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    def close(self, graceful: bool = False) -> None:
        """Once: a thread does, and waits two seconds for the client if `graceful`; then gunicorn's loop would again."""
        if not self._closed:
            self._closed = True
            try:
                super().close(graceful)
            except OSError:
                super().close()


class InWords:
    """A client's socket for what gunicorn answers by itself, because it is no request of HTTP: its status and reason
    stay, and what it says is problem details, as of all else."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def sendall(self, page: bytes) -> None:
        """The same answer in other words. Raises OSError."""
        status, _, reason = page.partition(b"\r\n")[0].decode("latin-1").removeprefix("HTTP/1.1 ").partition(" ")
        said = Problem(
            type=TYPE + (code := reason.lower().replace(" ", "-")),
            title=reason,
            status=int(status),
            detail="what was sent is no request that can be read" if status != "500" else "a defect",
            instance=secrets.token_hex(8),
            code=code,
            remedy="send a request of HTTP/1.1, with shorter lines and headers" if status != "500" else "see the log",
        )
        body = said.model_dump_json().encode() + b"\n"
        head = f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: {MEDIA_TYPE}\r\n"
        self._client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


class Worker(ThreadWorker):  # type: ignore[misc] # gunicorn brings no types
    """An act is never ended here, whatever it takes: only where a client's bytes are waited for, or its taking ours."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._lock = threading.Lock()
        self._waiting: set[Connection] = set()
        """Those for whom a thread waits right now: for their next bytes, or until they take ours."""
        self._ended: set[Connection] = set()
        """By us; a thread is about to leave them."""
        self._submitted = 0
        """Connections that have a thread or wait for one."""
        self._unsaid, self._said = 0, float("-inf")

    def accept(self, listener: socket.socket) -> None:
        """Take a connection; a thread takes it when its first byte comes."""
        try:
            client, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        client = Paced(fileno=client.detach())
        connection = Connection(self, self.cfg, client, address, listener.getsockname())
        connection.timeout = connection.since + STALL_SECONDS
        self.pending_conns.append(connection)
        readable = partial(self.on_pending_socket_readable, connection)
        self.poller.register(client, selectors.EVENT_READ, readable)

    def enqueue_req(self, conn: Connection) -> None:
        """Bytes have come: a thread is wanted."""
        with self._lock:
            self._submitted += 1
        super().enqueue_req(conn)

    def handle(self, conn: Connection) -> Any:
        """In a thread: a request, and the connection's end if it is the last."""
        conn.begin()
        try:
            goes_on = super().handle(conn)
            if not goes_on:  # in gunicorn's loop all others would wait for this client
                conn.begin()
                with self.waiting(conn):
                    conn.close(graceful=True)
            return goes_on
        finally:
            with self._lock:
                self._submitted -= 1
                self._ended.discard(conn)

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """What is no request is answered by this, and by nobody else."""
        super().handle_error(req, InWords(client), addr, exc)

    @contextmanager
    def waiting(self, connection: Connection) -> Iterator[None]:
        """A thread waits for its client; the sockets of those that are in `_waiting` are open."""
        with self._lock:
            self._waiting.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._waiting.discard(connection)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """A turn of gunicorn's loop."""
        super().wait_for_and_dispatch_events(min(timeout, LOOK_SECONDS) if self._short() > 0 else timeout)

    def murder_pending(self) -> None:
        """Each turn: end those that sent no byte in time, and those whose request is not whole in time."""
        if self.nr_conns >= self.worker_connections or not self.alive:
            for connection in self.pending_conns:
                connection.timeout = min(connection.timeout, connection.since + ROOM_SECONDS)
        super().murder_pending()
        self._make_room()

    def _short(self) -> int:
        """Of threads, once those that were ended are left."""
        return self._submitted - len(self._ended) - int(self.cfg.threads)

    def _make_room(self) -> None:
        now = time.monotonic()
        with self._lock:  # nobody closes a socket that is waited for meanwhile
            for connection in sorted(self._waiting - self._ended, key=lambda each: each.since):
                limit = ROOM_SECONDS if self._short() > 0 else REQUEST_SECONDS
                if now - connection.since >= limit + connection.moved / RATE:
                    connection.end()
                    self._ended.add(connection)
                    self._unsaid += 1
        if self._unsaid and now - self._said >= SAY_SECONDS:
            log.info("%d connections were let go that kept a thread waiting", self._unsaid)
            self._unsaid, self._said = 0, now
