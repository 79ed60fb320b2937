"""The client library's transport, replaced: a timeout on every request, our CA and no other, no log of bodies.

`Transport` stands where `kubernetes.client.rest.RESTClientObject` does; the generated API classes above it make paths
and queries. Theirs takes proxies from the environment, waits for ever by default, and logs every body at DEBUG.
"""

import json
import os
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import urllib3

from images.values.faults import root_cause, unverified
from netboot.join.errors import ClusterUnavailableError
from netboot.kube.errors import KubeconfigError, StatusError, TooMuchError
from netboot.kube.kubeconfig import Kubeconfig

_CHUNK = 65_536
CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
LONGEST_ANSWER = 16 * 1024 * 1024
"""Bytes that are read of an answer, or of an event. One object never has so many: the apiserver takes 3 MiB in a
request, etcd half of that; which anybody who may ask for a certificate may fill."""


class Reply(NamedTuple):
    """A successful answer: its JSON and its `Date` header."""

    body: Any
    date: str


class Transport:
    """Requests to one apiserver. Thread-safe. Nothing is sent again by itself, and no redirect is followed."""

    def __init__(
        self,
        kubeconfig: Kubeconfig,
        acting: Callable[[], AbstractContextManager[object]] = nullcontext,
        read: float = READ_SECONDS,
    ) -> None:
        """`acting`: around each request that is no GET; it raises where nothing may be changed now. `read`: seconds of
        silence that are too many, where a request names no others."""
        self._server, self._acting, self._read = kubeconfig.server, acting, read
        manager = urllib3.PoolManager(
            ssl_context=_context(kubeconfig),
            server_hostname=kubeconfig.server_name,
            maxsize=64,
            retries=False,
        )
        # Its one pool, asked directly: the manager would take each URL apart twice more, a tenth of a call's CPU time.
        self._pool = manager.connection_from_url(kubeconfig.server)

    def close(self) -> None:
        """Close the idle connections of the pool."""
        self._pool.close()

    def exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: Any = None, read: float | None = None
    ) -> Reply:
        """One request and its whole answer.

        Raises:
            StatusError: answered with no success. TooMuchError: beyond LONGEST_ANSWER, or not answered in
                time. ClusterUnavailableError: not answered. NotLeadingError: not sent, for another replica leads.
        """
        with nullcontext() if method == "GET" else self._acting():
            return self._exchange(method, url, headers, body, read)

    def _exchange(self, method: str, url: str, headers: Mapping[str, str], body: Any, read: float | None) -> Reply:
        response = self.open(method, url, headers, body, read)
        try:
            data = response.read(LONGEST_ANSWER + 1)
            if len(data) > LONGEST_ANSWER:
                response.close()
                raise TooMuchError(f"{self._server} answers at greater length than any list or object should have")
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._unavailable(error) from None
        finally:
            response.release_conn()
        if not 200 <= response.status <= 299:
            raise StatusError(response.status, data)
        try:
            return Reply(json.loads(data), response.headers.get("Date", ""))
        except (ValueError, RecursionError):
            raise ClusterUnavailableError(f"{self._server} does not answer as an apiserver does: no JSON") from None

    def open(
        self, method: str, url: str, headers: Mapping[str, str], body: Any = None, read: float | None = None
    ) -> urllib3.BaseHTTPResponse:
        """One request; the answer unread, whatever its status. `read`: seconds of silence that are too many.

        Raises:
            ClusterUnavailableError: not answered.
        """
        try:
            return self._pool.urlopen(
                method,
                urlsplit(url)._replace(scheme="", netloc="").geturl(),
                headers={"Content-Type": "application/json", **headers},
                body=None if body is None else json.dumps(body),
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=self._read if read is None else read),
                preload_content=False,
                redirect=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._unavailable(error) from None

    def _call(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        query_params: Sequence[tuple[str, Any]] | None = None,
        body: Any = None,
        **_unused: Any,
    ) -> Any:
        full = f"{url}?{urlencode(query_params)}" if query_params else url
        return self.exchange(method, full, headers or {}, body).body

    # What `kubernetes.client.ApiClient` calls; it is always told `_preload_content=False` and hands the JSON through.

    def GET(self, url: str, **how: Any) -> Any:  # noqa: N802
        """Reads; the JSON of the answer."""
        return self._call("GET", url, **how)

    def POST(self, url: str, **how: Any) -> Any:  # noqa: N802
        """Creates; the JSON of what is there then."""
        return self._call("POST", url, **how)

    def PUT(self, url: str, **how: Any) -> Any:  # noqa: N802
        """Replaces; the JSON of what is there then."""
        return self._call("PUT", url, **how)

    def DELETE(self, url: str, **how: Any) -> Any:  # noqa: N802
        """Deletes; the JSON of what the apiserver says to it."""
        return self._call("DELETE", url, **how)

    def _unavailable(self, error: BaseException) -> ClusterUnavailableError:
        host = urlsplit(self._server).netloc
        refused = isinstance(error, urllib3.exceptions.NewConnectionError)  # which is a ConnectTimeoutError, too
        if isinstance(error, urllib3.exceptions.ConnectTimeoutError) and not refused:
            return ClusterUnavailableError(f"the apiserver {host} could not be reached within {CONNECT_SECONDS:.0f} s")
        if isinstance(error, urllib3.exceptions.ReadTimeoutError):
            return TooMuchError(f"the apiserver {host} did not answer within {self._read:.0f} s")
        if unverified(error):
            unsigned = f"the apiserver {host} has no certificate that the kubeconfig's authority has signed"
            return ClusterUnavailableError(f"{unsigned}: {root_cause(error)}")
        if isinstance(error, urllib3.exceptions.SSLError):
            failed = f"TLS with the apiserver {host} failed, not for its certificate"
            return ClusterUnavailableError(f"{failed}: {root_cause(error)}")
        return ClusterUnavailableError(f"the apiserver {host} cannot be reached: {root_cause(error)}")


def _context(kubeconfig: Kubeconfig) -> ssl.SSLContext:
    """TLS that believes the kubeconfig's authority and nobody else, whatever the environment says."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=kubeconfig.authority)
    except (ssl.SSLError, ValueError):
        raise KubeconfigError(f"{kubeconfig.path}: its certificate-authority is not PEM certificates") from None
    if kubeconfig.certificate is not None and kubeconfig.key is not None:
        _load_pair(context, kubeconfig.certificate, kubeconfig.key, kubeconfig)
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes, kubeconfig: Kubeconfig) -> None:
    """OpenSSL wants a file: one in memory, which has no name in any folder."""
    descriptor = os.memfd_create("netboot-client", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        except ssl.SSLError:
            raise KubeconfigError(f"{kubeconfig.path}: client certificate and key do not fit") from None


def lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Those of an answer, as they come; empty ones are left out. Raises TooMuchError: one is beyond LONGEST_ANSWER."""
    rest = bytearray()
    for chunk in response.stream(amt=_CHUNK, decode_content=False):
        rest += chunk
        if b"\n" in chunk:
            *whole, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            yield from filter(None, whole)
        elif len(rest) > LONGEST_ANSWER:
            raise TooMuchError("the apiserver sends an event of greater length than any object should have")
