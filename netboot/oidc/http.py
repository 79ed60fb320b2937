"""Questions to an issuer: over TLS, each with a deadline and an end, and no answer leads elsewhere."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from images.values.faults import root_cause, unverified
from images.values.sessions import session
from netboot import credentials
from netboot.lifecycle.errors import IssuerUnavailableError

DEADLINE_SECONDS = 5.0
_LARGEST, _BLOCK = 256 * 1024, 16 * 1024
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "Connection": "close"}


class Answered(NamedTuple):
    """What came: the status, and the JSON object; empty where it was none."""

    status: int
    body: dict[str, Any]


class Asker:
    """Each question over a connection of its own: neither a proxy nor ~/.netrc has a say in where credentials go.
    `authority`: PEM, read anew each time; None: by what the system trusts. `named`: how words name that setting."""

    def __init__(self, authority: Path | None, named: str, deadline: float = DEADLINE_SECONDS) -> None:
        self._authority, self._named, self._deadline = authority, named, deadline

    def get(self, url: str) -> Answered:
        """Raises IssuerUnavailableError: it does not answer, late, or at too great length."""
        return self._ask("GET", url, None, None)

    def post(self, url: str, form: Mapping[str, str], basic: tuple[str, str] | None = None) -> Answered:
        """A form; `basic`: user and password. Raises as `get`."""
        return self._ask("POST", url, form, basic)

    def _ask(self, method: str, url: str, form: Mapping[str, str] | None, basic: tuple[str, str] | None) -> Answered:
        begun = time.monotonic()
        with ExitStack() as held:
            asking = held.enter_context(session())
            asking.verify = self._verify(held)
            adapter = held.enter_context(_ended_after(self._deadline))
            for scheme in ("http://", "https://"):
                asking.mount(scheme, adapter)
            how: dict[str, Any] = {"timeout": self._deadline, "allow_redirects": False, "stream": True}
            try:
                answer = asking.request(method, url, data=form, auth=basic, headers=_HEADERS, **how)
                held.enter_context(closing(answer))
                return Answered(answer.status_code, _object(self._bounded(answer, begun)))
            except requests.exceptions.SSLError as error:
                if time.monotonic() - begun >= self._deadline:
                    raise self._late() from None
                words = "its certificate is not believed" if unverified(error) else "TLS failed"
                raise IssuerUnavailableError(f"{words}: {root_cause(error)}; see {self._named}") from None
            except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError):
                raise self._late() from None
            except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
                if time.monotonic() - begun >= self._deadline:
                    raise self._late() from None
                raise IssuerUnavailableError(f"it cannot be reached: {root_cause(error)}") from None

    def _bounded(self, answer: requests.Response, begun: float) -> bytes:
        data = bytearray()
        while block := answer.raw.read1(_BLOCK):  # what has come, so that who sends a byte at a time is late too
            data += block
            if len(data) > _LARGEST:
                raise IssuerUnavailableError(f"it answers with more than {_LARGEST} bytes")
            if time.monotonic() - begun >= self._deadline:
                raise self._late()
        if time.monotonic() - begun >= self._deadline:  # what is cut off then looks like its end
            raise self._late()
        return bytes(data)

    def _late(self) -> IssuerUnavailableError:
        return IssuerUnavailableError(f"it did not answer within {self._deadline:g} s")

    def _verify(self, held: ExitStack) -> bool | str:
        if self._authority is None:
            return True
        try:
            return str(held.enter_context(credentials.named(self._authority)))
        except OSError as error:
            raise IssuerUnavailableError(f"{self._named}: {self._authority}: {error.strerror}") from None


@contextmanager
def _ended_after(seconds: float) -> Iterator[HTTPAdapter]:
    """What ends its connections then, in whatever stage they are: a timeout of sockets begins anew with each byte."""
    kept, over = list[socket.socket](), threading.Event()

    def cut() -> None:
        over.set()
        for each in kept:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield _Adapter(kept, over)
    finally:
        timer.cancel()
        for each in kept:
            each.close()


class _Adapter(HTTPAdapter):
    """Keeps a second handle of each connection's socket, from before TLS on."""

    def __init__(self, kept: list[socket.socket], over: threading.Event) -> None:
        super().__init__()

        def keep(made: socket.socket) -> socket.socket:
            kept.append(made.dup())
            if over.is_set():
                made.shutdown(socket.SHUT_RDWR)
            return made

        class Plain(HTTPConnection):
            def _new_conn(self) -> socket.socket:
                return keep(super()._new_conn())

        class Tls(HTTPSConnection):
            def _new_conn(self) -> socket.socket:
                return keep(super()._new_conn())

        pools = {
            "http": type("Pool", (HTTPConnectionPool,), {"ConnectionCls": Plain}),
            "https": type("Pool", (HTTPSConnectionPool,), {"ConnectionCls": Tls}),
        }
        self.poolmanager.pool_classes_by_scheme = pools


def _object(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
