"""One service, asked by HTTP."""

import functools
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from netboot.client import service, transport
from netboot.client.api import Apis
from netboot.client.base import Values
from netboot.client.errors import CannotTellError, ClientError, FailedError, kind_of, of_problem
from netboot.client.named import check_authorities
from netboot.client.service import Service
from netboot.client.watch import RETRY_SECONDS, Watch

if TYPE_CHECKING:
    import requests

P = ParamSpec("P")
T = TypeVar("T")
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 30.0
_BLOCK = 64 * 1024
_CSV = {"Content-Type": "text/csv"}


class Client(Apis):
    """The management API. Each part of it is an attribute: `client.machines.get("gpu-001")`.

    `seconds`: an answer begins within so many, and is whole within as many more; `retry_seconds`: for so many
    a watch that was cut tries again. It holds no connection, so threads may share it.
    """

    def __init__(
        self, service: Service, *, seconds: float = ANSWER_SECONDS, retry_seconds: float = RETRY_SECONDS
    ) -> None:
        super().__init__(self)
        self.service = service
        self._seconds, self._retry_seconds = seconds, retry_seconds
        self._last = threading.local()  # what this thread was answered last

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Values | None = None,
        headers: Values | None = None,
        body: object = None,
        text: bool = False,
        also: tuple[int, ...] = (),
    ) -> Any:
        """What `path` answers, parsed, or with `text` as it is; its parts ask by it. `headers` and `query` that are
        None are not sent; a `body` that is a text goes as CSV; `also`: statuses that are answers, too.

        Raises:
            ClientError: it was not done; its kind is one of the three outcomes, or FailedError.
        """
        with self._answer(method, path, query, headers, body) as answer:
            whole = self._whole(answer)
            if answer.status_code not in (200, 201, 202, *also):
                self._refuse(answer, whole)
            self._last.tag = str(answer.headers.get("ETag", ""))
        try:
            return whole.decode() if text else json.loads(whole)
        except ValueError:
            raise self._no_netboot() from None

    def tagged(self, operation: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> tuple[T, str]:
        """What an operation of this client answers, and its `ETag`, by which an act says what it was meant for
        (`if_match`); empty: it has none. Raises as the operation."""
        self._last.tag = ""
        answer = operation(*arguments, **named)
        return answer, self._last.tag

    def follow(self, path: str, *, query: Values | None = None) -> Watch:
        """What happens there; its parts watch by it. Raises as `ask`, once it is read."""
        return Watch(lambda headers: self._stream(path, query, headers), retry_seconds=self._retry_seconds)

    @contextmanager
    def _stream(self, path: str, query: Values | None, headers: Values) -> Iterator[Iterator[bytes]]:
        with self._answer("GET", path, query, headers, None) as answer:
            if answer.status_code != 200:
                self._refuse(answer, self._whole(answer))
            if not answer.headers.get("Content-Type", "").startswith("text/event-stream"):
                raise self._no_netboot()
            yield iter(lambda: bytes(answer.raw.read1(_BLOCK)), b"")

    @contextmanager
    def _answer(
        self, method: str, path: str, query: Values | None, headers: Values | None, body: object
    ) -> "Iterator[requests.Response]":
        import requests
        import urllib3

        to = self.service
        if to.authority is not None:
            check_authorities(to.authority, "name another with --certificate-authority")
        sent = _said(headers) | {"Authorization": f"Bearer {to.token if isinstance(to.token, str) else to.token()}"}
        sent |= {"Accept-Encoding": "identity"}  # so that what has come can be read at once
        acts = method != "GET"
        if acts:
            sent.setdefault("Idempotency-Key", f'"{uuid.uuid4()}"')
        data = {"data": body.encode(), "headers": sent | _CSV} if isinstance(body, str) else {"json": body}
        how: Any = {"headers": sent, "timeout": (min(CONNECT_SECONDS, self._seconds), self._seconds), **data}
        try:
            with ExitStack() as held:
                session = held.enter_context(transport.session(to.authority, to.proxy))
                how |= {"params": _said(query), "allow_redirects": False, "stream": True}
                ask = functools.partial(session.request, method, to.server + path, **how)
                answer = transport.asked_twice(ask) if acts else ask()
                yield held.enter_context(closing(answer))
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
            raise self._unreachable(error) from None

    def _whole(self, answer: "requests.Response") -> bytes:
        begun, whole = time.monotonic(), bytearray()
        while block := answer.raw.read1(_BLOCK):  # what has come, so that who sends a byte at a time is late too
            whole += block
            if time.monotonic() - begun > self._seconds:
                raise CannotTellError(
                    f"the service at {self.service.server} did not answer within {self._seconds:g} s", "try again"
                )
        return bytes(whole)

    def _refuse(self, answer: "requests.Response", whole: bytes) -> NoReturn:
        status, later = answer.status_code, answer.headers.get("Retry-After", "")
        try:
            error = of_problem(json.loads(whole))
        except (ValueError, KeyError, TypeError):
            if kind_of(status, "") is not CannotTellError:
                raise self._no_netboot() from None
            what = (
                f"a proxy before the service at {self.service.server} answers {status}: it does not reach the service"
            )
            raise CannotTellError(what, "try again; whether an act was done is told by `netboot audit`") from None
        error.retry_after = float(later) if later.isascii() and later.isdigit() and len(later) < 9 else None
        raise error

    def _unreachable(self, error: Exception) -> ClientError:
        to = self.service
        why, remedy = transport.why_not(error, to.server)
        remedy = f"{remedy}." if remedy else "is `netboot serve` running?"
        whence = f" The address is from {to.hint}" if to.hint else ""
        return CannotTellError(f"cannot reach the service at {to.server}: {why}", f"{remedy}{whence}")

    def _no_netboot(self) -> ClientError:
        whence = f" (from {self.service.hint})" if self.service.hint else ""
        what = f"what answers at {self.service.server} is not netboot's management API"
        return FailedError(what, f"check the address{whence}")


def connect(
    server: str | None = None,
    *,
    token_file: Path | None = None,
    authority: Path | None = None,
    context: str | None = None,
    seconds: float = ANSWER_SECONDS,
) -> Client:
    """A client of the service that is named, by the environment where it is not, else by the context in use: as the
    commands of netboot find it, but for a site's configuration. `authority`: PEM that vouches for its certificate;
    `seconds`: for an answer.

    Raises:
        ClientError: nothing says which service is meant, there is no such context, or it has no token. ValueError: the
        address is none.
    """
    return Client(service.find(server, token_file, authority, context), seconds=seconds)


def _said(values: Mapping[str, object] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (values or {}).items() if value is not None}
