"""A real registry for tests, and what stands before it: a proxy that fails where it is told to."""

import base64
import contextlib
import hashlib
import http.client
import json
import ssl
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from images.registry.client import OciRegistry
from images.registry.reference import read_reference
from images.registry.retry import RetryPolicy
from lab.registry import Registry, Tls, registry
from lab.servers import serving

IMPATIENT = RetryPolicy(attempts=3, sleep=lambda _seconds: None)
"""Tries thrice, and waits for nothing."""
Fault = Callable[[str, str], int | None]
"""Method and path → the status that is answered in the registry's place, None: the registry answers."""


@contextlib.contextmanager
def repository(real: Registry, tag: str = "stable") -> Iterator[OciRegistry]:
    """A repository of it."""
    with OciRegistry(read_reference(f"{real.address}/site/images:{tag}")) as opened:
        yield opened


class Proxy:
    """Before a registry. `fault`: see above. `ranges`: whether it passes on what part of a blob is asked for.

    `cut`: of the next answers longer than that, to paths that end in `cut_of`, so many bytes are sent, then the
    connection is cut; one entry for each.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.address = ""
        self.fault: Fault = lambda _method, _path: None
        self.cut: list[int] = []
        self.cut_of = ""
        self.ranges = True
        self.asked: list[tuple[str, str, str]] = []
        """Method, path and Range of each request."""
        self.login = ""
        """`name:password` that its token service wants; with it, requests without its token are answered 401."""

    @property
    def token(self) -> str:
        """What the token service gives."""
        return hashlib.sha256(self.login.encode()).hexdigest()


@contextlib.contextmanager
def proxy(target: str, tls: Tls | None = None) -> Iterator[Proxy]:
    """A proxy for the length of a block; with `tls` that is what it speaks."""
    state = Proxy(target)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Passing,), {"state": state}))
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.certificate, tls.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    state.address = f"127.0.0.1:{server.server_address[1]}"
    with serving(server):
        yield state


@contextlib.contextmanager
def faulty(folder: Path) -> Iterator[tuple[Registry, Proxy]]:
    """A registry, and a proxy before it."""
    with registry(folder) as real, proxy(real.address) as before:
        yield real, before


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves first is no fault of anybody's."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    state: Proxy

    def _pass(self) -> None:
        self.state.asked.append((self.command, self.path, self.headers.get("Range", "")))
        body = self._body()
        if self.state.login and not self._authorised():
            return
        status = self.state.fault(self.command, self.path)
        if status is not None:
            self._say(status, {"Content-Length": "0"}, b"")
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        if not self.state.ranges:
            headers.pop("Range", None)
        connection = http.client.HTTPConnection(self.state.target, timeout=60)
        try:
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            self._say(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def _authorised(self) -> bool:
        """The token service of the distribution's specification, and who has not been there is sent there."""
        state, said = self.state, self.headers.get("Authorization", "")
        if self.path.startswith("/token?"):
            right = said == "Basic " + base64.b64encode(state.login.encode()).decode()
            body = json.dumps({"token": state.token}).encode() if right else b""
            self._say(200 if right else 401, {"Content-Length": str(len(body))}, body)
            return False
        if said != f"Bearer {state.token}":
            scope = "repository:site/images:pull,push"
            where = f'Bearer realm="https://{state.address}/token",service="lab",scope="{scope}"'
            self._say(401, {"WWW-Authenticate": where, "Content-Length": "0"}, b"")
            return False
        del self.headers["Authorization"]
        return True

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().strip(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _say(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in {"connection", "transfer-encoding", "date", "server"}:
                self.send_header(name, value)
        cut = self.state.cut
        if cut and len(body) > cut[0] and self.path.endswith(self.state.cut_of):
            body = body[: cut.pop(0)]
            self.close_connection = True
        with contextlib.suppress(OSError):  # the client may leave first
            self.end_headers()
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = _pass  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """What was asked is kept in `asked`."""


_HOP = {"connection", "transfer-encoding", "content-length", "accept-encoding"}
