"""Other origins: nginx over a copy of the store, and one that misbehaves in known ways."""

import contextlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseServer
from typing import Any
from urllib.parse import urlsplit

from lab.network import Network
from lab.processes import child
from lab.site import free_port

_NGINX = """\
daemon off;
user root;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr notice;
events {{ worker_connections 1024; }}
http {{
  access_log {folder}/nginx-access.log;
  client_body_temp_path {folder}/nginx-tmp;
  proxy_temp_path {folder}/nginx-tmp;
  fastcgi_temp_path {folder}/nginx-tmp;
  uwsgi_temp_path {folder}/nginx-tmp;
  scgi_temp_path {folder}/nginx-tmp;
  sendfile on;
  server {{
    listen {address}:{port};
    location /v1/ {{ alias {store}/; }}
  }}
}}
"""
_READY = r"start worker process \d+"
READY_SECONDS = 180.0


@contextlib.contextmanager
def nginx(network: Network, store: Path, port: int = 8000) -> Iterator[str]:
    """nginx in the provisioning network with the store at `/v1/`: a full origin; yields its URL."""
    folder = network.folder
    config = folder / "nginx.conf"
    config.write_text(_NGINX.format(folder=folder, address=network.inside, port=port, store=store.resolve()))
    argv = ["nginx", "-e", "stderr", "-c", str(config), "-p", str(folder)]
    with child("nginx", argv, folder / "nginx.log", namespace=network.namespace) as running:
        running.output.wait_for(_READY, READY_SECONDS)
        yield f"http://{network.inside}:{port}"


class Misbehaving:
    """An origin over a store that fails where it is told to. `requests`: (path, Range header) of each, in order.

    `die_after`: of every answer that is longer it sends so many bytes, then cuts the connection. `corrupt`: offsets
    in the blob `blob` at which the byte sent is wrong.
    """

    def __init__(self, store: Path, blob: str, *, die_after: int | None = None, corrupt: tuple[int, ...] = ()) -> None:
        self.store, self.blob, self.die_after, self.corrupt = store, blob, die_after, corrupt
        self.requests: list[tuple[str, str]] = []
        self.url = ""

    def body(self, path: str) -> bytes | None:
        """What this origin has at a path, with its faults; None: nothing."""
        file = (self.store / path.removeprefix("/v1/")).resolve()
        if not path.startswith("/v1/") or not file.is_relative_to(self.store.resolve()) or not file.is_file():
            return None
        data = bytearray(file.read_bytes())
        if path.endswith(self.blob):
            for offset in self.corrupt:
                data[offset] ^= 0xFF
        return bytes(data)


@contextlib.contextmanager
def misbehaving(origin: Misbehaving, host: str) -> Iterator[Misbehaving]:
    """Serve it on a free port of `host` for the length of a block; `origin.url` says where."""
    server = ThreadingHTTPServer((host, free_port(host)), _handler(origin))
    server.daemon_threads = True
    origin.url = f"http://{host}:{server.server_address[1]}"
    with serving(server):
        yield origin


@contextlib.contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    """Answer requests in a thread for the length of a block; the server is closed at its end."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(origin: Misbehaving) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            range_header = self.headers.get("Range", "")
            path = urlsplit(self.path).path
            origin.requests.append((path, range_header))
            data = origin.body(path)
            if data is None:
                self.send_error(404)
                return
            part = re.fullmatch(r"bytes=(\d+)-(\d*)", range_header)
            start, end = (int(part[1]), int(part[2] or len(data) - 1)) if part else (0, len(data) - 1)
            self._answer(data, start, min(end, len(data) - 1), partial=part is not None)

        def _answer(self, data: bytes, start: int, end: int, *, partial: bool) -> None:
            self.send_response(206 if partial else 200)
            if partial:
                self.send_header("Content-Range", f"bytes {start}-{end}/{len(data)}")
            self.send_header("Content-Length", str(end + 1 - start))
            self.send_header("Connection", "close")
            self.end_headers()
            sent = data[start : end + 1]
            if origin.die_after is not None:
                sent = sent[: origin.die_after]
            with contextlib.suppress(OSError):  # the client may leave first
                self.wfile.write(sent)
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """What was asked is kept in `requests`."""

    return Handler
