"""JSON over HTTP: no redirects, no proxies, bounded answers; TLS believes only the authorities that it is given."""

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from .errors import AnswerError, NetworkError, RefusedError, ValidityError

LONGEST = 256 * 1024
"""Bytes of an answer."""
LONGEST_WAIT = 900.0
"""Seconds that a server may make us wait: one that says a year is mistaken."""
_EARLY, _LATE = 9, 10
_DATES = {
    _EARLY: "is not valid yet by this machine's clock",
    _LATE: "has expired by this machine's clock, which no plain answer may put back: renew it, or set the clock",
}
"""By OpenSSL's code of the fault (X509_V_ERR_CERT_NOT_YET_VALID, …_HAS_EXPIRED)."""


@dataclass(frozen=True, slots=True)
class Server:
    """Somebody who answers below `url`. `authorities` (PEM) is for https; whole calls take at most `seconds`; `pair`: a
    file of certificate and key by which he knows us, or empty."""

    url: str
    authorities: str = ""
    seconds: float = 30.0
    pair: str = ""

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Ask, and return the JSON that was answered (None: nothing was).

        Raises:
            NetworkError, ValidityError, AnswerError, RefusedError (any status but 2xx).
        """
        with self.open(method, path, body, headers) as response:
            data = response.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise AnswerError(f"{self.url} answered more than {LONGEST} bytes")
        if not 200 <= response.status < 300:
            raise self.refusal(response, data)
        return read_json(data, self.url) if data else None

    @contextlib.contextmanager
    def open(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        idle: float = 20.0,
    ) -> Iterator[http.client.HTTPResponse]:
        """Ask, and give the answer to be read in the block, which `seconds` end; `idle` without a byte end it too."""
        connection, done, late = self._connection(), threading.Event(), monotonic() + self.seconds
        threading.Thread(target=_cut, args=(connection, done, self.seconds), daemon=True).start()
        try:
            connection.connect()
            _settle(connection.sock, idle)
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, urlsplit(self.url).path + path, data, {**_HEADERS, **(headers or {})})
            yield connection.getresponse()
        except ssl.SSLCertVerificationError as error:
            raise self._unbelieved(error) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = str(error) or type(error).__name__
            if monotonic() >= late:
                reason = f"no whole answer in {self.seconds:.0f} s"
            raise NetworkError(plain(f"cannot reach {self.url}: {reason}")) from None
        finally:
            done.set()
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        url = urlsplit(self.url)
        if url.scheme != "https":
            return http.client.HTTPConnection(url.hostname or "", url.port, timeout=20)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies names and chains, and trusts nobody yet
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_verify_locations(cadata=self.authorities)
        except (ssl.SSLError, ValueError):
            raise AnswerError(f"the authorities for {self.url} are not certificates") from None
        try:
            if self.pair:
                context.load_cert_chain(self.pair)
        except (ssl.SSLError, OSError):
            raise AnswerError(f"the certificate and key for {self.url} cannot be read") from None
        return http.client.HTTPSConnection(url.hostname or "", url.port, timeout=20, context=context)

    def _unbelieved(self, error: ssl.SSLCertVerificationError) -> NetworkError:
        fault = _DATES.get(error.verify_code)
        if fault:
            return ValidityError(f"the certificate of {self.url} {fault}", early=error.verify_code == _EARLY)
        return NetworkError(f"{self.url} is not who it should be: {error.verify_message}")

    def refusal(self, response: http.client.HTTPResponse, data: bytes) -> RefusedError:
        """The error that an answer with another status than 2xx is."""
        reason = error_message(data) or response.reason
        if 300 <= response.status < 400:
            reason = "a redirect, and redirects are not followed"
        after = response.headers.get("Retry-After", "")
        wait = min(float(after), LONGEST_WAIT) if after.isascii() and after.isdigit() else 0.0
        return RefusedError(plain(f"{self.url} answered {response.status}: {reason}"), response.status, wait)


_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "netboot-agent"}


def read_json(data: bytes, whose: str) -> Any:
    """The JSON in `data`.

    Raises:
        AnswerError: it is none.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise AnswerError(f"{whose} answered what is no JSON") from None


def error_message(data: bytes) -> str:
    """The words of an error: join's `{"error": {"message", "remedy"}}`, or Kubernetes' `{"message"}`; "": none."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    error = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return ""
    return "; ".join(str(error[name]) for name in ("message", "remedy") if isinstance(error.get(name), str))


def plain(text: str) -> str:
    """At most 300 printable characters of one line: what a server says may not draw on our console."""
    return "".join(c if " " <= c <= "~" else " " for c in text)[:300].rstrip()


def _settle(connected: socket.socket, idle: float) -> None:
    """Notice, in half a minute, a peer that is gone from a connection on which nothing is said for long."""
    connected.settimeout(idle)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3)):
        connected.setsockopt(socket.IPPROTO_TCP, option, value)


def _cut(connection: http.client.HTTPConnection, done: threading.Event, seconds: float) -> None:
    """End a connection that is not done in time: a server that sends a byte now and then would hold us for ever."""
    while not done.wait(seconds):
        if connection.sock is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
        seconds = 1.0
