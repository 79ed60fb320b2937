"""A real HTTP server on loopback whose faults are chosen: what an origin of a bad day looks like to a machine."""

import ctypes
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PIECE = 65536
LIBC = ctypes.CDLL(None, use_errno=True)
"""Python has no setns(2) before 3.12."""


@dataclass
class Origin:
    """Files by path, faults, and what was asked of it. Counts and offsets are bytes of the file."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    """False: as a server that knows no Range header: 200 and the whole file."""
    dies_at: int | None = None
    """The connection breaks at this offset of the file; each time, unless `recovers`."""
    recovers: bool = False
    stalls_at: int | None = None
    """Nothing comes any more from this offset on, and the connection stays."""
    alter: Callable[[bytes], bytes] = bytes
    """What happens to a file on its way."""
    status: int = 200
    """Another one: answered to everything."""
    busy: list[tuple[int, str]] = field(default_factory=list)
    """Status and Retry-After of the next answers."""
    rate: int | None = None
    """Bytes a second of one connection."""
    sent: Callable[[int], None] = lambda _: None
    """Told how many bytes went out, each time that some did."""
    gone: threading.Event = field(default_factory=threading.Event)
    """Once set, connections break, those that are under way too."""
    lies: threading.Event = field(default_factory=threading.Event)
    """Once set, what goes out is damaged, of requests that are under way too."""
    url: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and Range of every GET."""
    posted: list[tuple[str, bytes]] = field(default_factory=list)
    post_statuses: list[int] = field(default_factory=list)
    """Answers to the next posts; then 204."""
    released: threading.Event = field(default_factory=threading.Event)

    def ranges_of(self, path: str) -> list[str | None]:
        """The Range headers of all requests for a path."""
        return [asked for name, asked in self.asked if name == path]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    origin: Origin

    def do_GET(self) -> None:
        origin, wanted = self.origin, self.headers.get("Range")
        origin.asked.append((self.path, wanted))
        if origin.gone.is_set():
            self.close_connection = True
            return
        if origin.busy:
            status, retry_after = origin.busy.pop(0)
            self.send_response(status)
            self.send_header("Retry-After", retry_after)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data = origin.files.get(self.path)
        if data is None or origin.status != 200:
            self.send_error(404 if origin.status == 200 else origin.status)
            return
        data = origin.alter(data)
        first, last = 0, len(data) - 1
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "") if origin.ranges else None
        if match:
            first, last = int(match[1]), min(int(match[2] or last), last)
            if first > last:
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        self._send(data, first, last + 1)

    def _send(self, data: bytes, first: int, end: int) -> None:
        origin, stop = self.origin, end
        if origin.dies_at is not None:
            stop = min(stop, origin.dies_at)
        if origin.stalls_at is not None:
            stop = min(stop, origin.stalls_at)
        for at in range(first, max(first, stop), PIECE):
            if origin.gone.is_set():
                self.close_connection = True
                return
            piece = data[at : min(at + PIECE, stop)]
            self.wfile.write(piece[::-1] if origin.lies.is_set() else piece)
            origin.sent(min(at + PIECE, stop) - at)
            if origin.rate is not None and origin.released.wait(PIECE / origin.rate):
                break
        if stop < end:
            if origin.stalls_at is not None:
                origin.released.wait(180)
            if origin.recovers:
                origin.dies_at = None
            self.close_connection = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.origin.posted.append((self.path, body))
        self.send_response(self.origin.post_statuses.pop(0) if self.origin.post_statuses else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that went away, which is what these tests are about


def _listen(handler: type[_Handler], address: str, namespace: int | None) -> _Server:
    if namespace is not None:
        with Path(f"/proc/{namespace}/ns/net").open() as file:
            assert LIBC.setns(file.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
    return _Server((address, 0), handler)


@contextmanager
def dark() -> Iterator[Origin]:
    """An origin that answers no SYN: its listener's queue is full, and Linux drops what comes then."""
    with socket.socket() as listener, socket.socket() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting.connect(listener.getsockname())
        yield Origin(url=f"http://127.0.0.1:{listener.getsockname()[1]}")


@contextmanager
def serving(origin: Origin, address: str = "127.0.0.1", namespace: int | None = None) -> Iterator[Origin]:
    """Serve until the block ends; sets `origin.url`. `namespace`: a process whose network namespace has the address."""
    handler = type("Handler", (_Handler,), {"origin": origin})
    with ThreadPoolExecutor(1) as inside:  # a socket stays in the namespace of the thread that made it
        server = inside.submit(_listen, handler, address, namespace).result()
    origin.url = f"http://{address}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield origin
    finally:
        origin.released.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
