"""What gunicorn runs: its threaded worker, made fair to machines among those who only hold a connection.

A connection costs a thread only while there is something to read on it, and every request has an end: whoever has not
been served by then, for sending or taking slowly, is cut. One address has a share of connections and threads, not all.
"""

import selectors
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from functools import partial
from os import dup
from socket import SHUT_RDWR, socket
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

from netboot.addresses import plain_address
from netboot.config import Join
from netboot.web.join.tls import Certificate

THREADS = 32
REQUEST_SECONDS = 20.0
"""From the first byte, through the handshake, to the last byte of the answer."""
QUIET_SECONDS = 10.0
"""For the first byte."""


def settings(config: Join, certificate: Certificate) -> dict[str, Any]:
    """What gunicorn is told for one process of the join server; all together take `max_connections`."""
    return {
        "worker_class": f"{FairWorker.__module__}.{FairWorker.__qualname__}",
        "certfile": str(config.certificate),
        "keyfile": str(config.key),
        "ssl_context": lambda _config, _default: certificate.context(),
        "http_protocols": "h1",
        "do_handshake_on_connect": False,
        "worker_connections": max(THREADS + 1, -(-config.max_connections // config.workers)),
        "limit_request_line": 1024,
        "limit_request_fields": 24,
        "limit_request_field_size": 4096,
    }


class FairWorker(ThreadWorker):  # type: ignore[misc] # gunicorn brings no types
    """Everything but `handle` runs in the main thread, `handle` in the pool's threads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._most_held = max(4, self.cfg.worker_connections // 8)
        self._most_served = max(1, self.cfg.threads // 2)
        self._held: Counter[str] = Counter()
        self._served: Counter[str] = Counter()
        self._queued: dict[str, deque[Any]] = {}
        self._busy: dict[int, float] = {}
        """A descriptor of our own of each connection that a thread serves → when it is cut."""
        self._lock = threading.Lock()

    def init_process(self) -> None:
        """Start the cutter, then serve."""
        threading.Thread(target=self._cut_for_ever, name="cutter", daemon=True).start()
        super().init_process()

    def accept(self, listener: socket) -> None:
        """Take a connection, and wait for its first byte without a thread."""
        with suppress(BlockingIOError, ConnectionAbortedError):
            sock, client = listener.accept()
            address = plain_address(str(client[0]))
            if self._held[address] >= self._most_held:
                sock.close()
                return
            self._held[address] += 1
            self.nr_conns += 1
            conn = _Counted(self.cfg, sock, client, listener.getsockname(), partial(_less, self._held, address))
            conn.timeout = time.monotonic() + QUIET_SECONDS
            self.pending_conns.append(conn)
            self.poller.register(sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def enqueue_req(self, conn: Any) -> None:
        """Give it a thread, or have it wait for one where its address has its share."""
        address = plain_address(str(conn.client[0]))
        if self._served[address] >= self._most_served:
            self._queued.setdefault(address, deque()).append(conn)
            return
        self._served[address] += 1
        super().enqueue_req(conn)

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Let the next one of this address have the thread."""
        address = plain_address(str(conn.client[0]))
        _less(self._served, address)
        super().finish_request(conn, fs)
        waiting = self._queued.get(address)
        if waiting:
            self.enqueue_req(waiting.popleft())
        if not waiting:
            self._queued.pop(address, None)

    def handle(self, conn: Any) -> Any:
        """Serve what there is to read, within the time that there is."""
        own = dup(conn.sock.fileno())
        with self._lock:
            self._busy[own] = time.monotonic() + REQUEST_SECONDS
        try:
            return super().handle(conn)
        finally:
            with self._lock:
                self._busy.pop(own, None)
            socket(fileno=own).close()

    def _cut_for_ever(self) -> None:
        while True:
            time.sleep(1.0)
            now = time.monotonic()
            with self._lock:  # `handle` closes none of them meanwhile
                for own in [own for own, until in self._busy.items() if now >= until]:
                    self._busy[own] = now + 3600.0
                    _shut(own)


class _Counted(TConn):  # type: ignore[misc] # gunicorn brings no types
    """Tells when it is closed."""

    def __init__(self, cfg: Any, sock: socket, client: Any, server: Any, closed: Any) -> None:
        super().__init__(cfg, sock, client, server)
        self._closed = closed

    def close(self, graceful: bool = False) -> None:
        """At once: the main thread waits for nobody."""
        del graceful
        closed, self._closed = self._closed, lambda: None
        with suppress(OSError):
            self.sock.setblocking(False)
        super().close()
        closed()


def _less(counter: Counter[str], address: str) -> None:
    counter[address] -= 1
    if counter[address] <= 0:
        del counter[address]


def _shut(descriptor: int) -> None:
    """End both directions of a connection; whoever is blocked on it wakes up."""
    borrowed = socket(fileno=descriptor)
    try:
        with suppress(OSError):
            borrowed.shutdown(SHUT_RDWR)
    finally:
        borrowed.detach()
