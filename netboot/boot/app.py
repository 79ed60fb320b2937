"""The boot server's requests: from a path to its handler, and from a failure to its answer.

The path is taken as it came, never decoded: what is encoded, has dots or doubled slashes is simply not one of ours.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import web

from images.errors import ImageError
from netboot import logs
from netboot.admission import Seat
from netboot.boot import answers
from netboot.boot.answers import PreparedResponse
from netboot.boot.artifacts import Artifacts
from netboot.boot.binaries import Binaries
from netboot.boot.discovery import Discovering
from netboot.boot.metrics import Counters
from netboot.boot.nonces import Nonces
from netboot.boot.readiness import Readiness
from netboot.boot.reports import Reports
from netboot.boot.scripts import Scripts, Written
from netboot.boot.waiting import Waiting
from netboot.connections import connection_of
from netboot.lifecycle.bootid import is_shaped
from netboot.lifecycle.errors import (
    BadClaimError,
    JournalUnavailableError,
    LifecycleError,
    NoSuchBootError,
    OverloadedError,
    TooOftenError,
)

log = logging.getLogger(__name__)

SCRIPT = "/v1/boot"
_FIRMWARE = frozenset({"/boot.ipxe", SCRIPT})
"""What iPXE asks for: whatever goes wrong, it gets a script."""


class Asked(NamedTuple):
    """One request. `name`: what stands in the path for `<…>`; `query`: as it came; `peer`: the address that asks."""

    request: web.BaseRequest
    name: str
    query: str
    peer: str


Handler = Callable[[Asked], web.StreamResponse | Awaitable[web.StreamResponse]]


class Route(NamedTuple):
    """A path, and what answers each method that it has; `<…>` stands for any text. docs/http-provisioning.md."""

    path: str
    handlers: dict[str, Handler]

    def name_in(self, path: str) -> str | None:
        """What stands in `path` for this route's `<…>`; None: it is not a path of this route."""
        before, _, rest = self.path.partition("<")
        after = rest.rpartition(">")[2]
        fits = path.startswith(before) and path.endswith(after) and len(path) >= len(before) + len(after)
        return path[len(before) : len(path) - len(after)] if fits else None


class App:
    """The handler of every request. `in_flight`: those not yet answered; `routes`: all that there is to ask for."""

    def __init__(
        self,
        scripts: Scripts,
        waiting: Waiting,
        artifacts: Artifacts,
        binaries: Binaries,
        reports: Reports,
        nonces: Nonces,
        discovering: Discovering,
        readiness: Readiness,
        counters: Counters,
    ) -> None:
        self._scripts, self._waiting, self._readiness, self._counters = scripts, waiting, readiness, counters
        self.discovering = discovering
        self.routes = (
            Route(
                SCRIPT, {"GET": lambda asked: scripts.boot(asked.query, asked.peer, connection_of(asked.request).gone)}
            ),
            Route("/boot.ipxe", _reading(lambda _: waiting.chain())),
            Route("/ipxe/<file>", _reading(lambda asked: binaries.answer(asked.request, asked.name))),
            Route("/v1/blobs/<sha256>", _reading(lambda asked: artifacts.blob(asked.request, asked.name, asked.query))),
            Route("/v1/images/<digest>/<file>", _reading(lambda asked: artifacts.image(asked.request, asked.name))),
            Route("/v1/site/<file>", _reading(lambda asked: artifacts.site(asked.request, asked.name))),
            Route("/v1/boots/<id>/nonce", {"GET": lambda asked: nonces.nonce(asked.name, asked.query, asked.peer)}),
            Route("/v1/boots/<id>/events", {"POST": lambda asked: reports.event(asked.request, asked.name)}),
            Route("/v1/boots/<id>/crashes", {"POST": lambda asked: reports.crash(asked.request, asked.name)}),
            Route("/v1/boots/<id>/console", {"POST": lambda asked: reports.console(asked.request, asked.name)}),
            Route(
                "/v1/boots/<id>/health",
                {
                    "GET": lambda asked: reports.expected(asked.name, asked.query),
                    "POST": lambda asked: reports.health(asked.request, asked.name),
                },
            ),
            Route(
                "/v1/boots/<id>/discovery",
                {
                    "GET": lambda asked: discovering.declared(asked.name, asked.query, asked.peer),
                    "POST": lambda asked: discovering.report(asked.request, asked.name),
                },
            ),
            Route("/healthz", _reading(lambda _: readiness.healthy())),
            Route("/readyz", _reading(lambda _: readiness.ready())),
        )
        self._fixed = {route.path: route for route in self.routes if "<" not in route.path}
        self._patterns = tuple(route for route in self.routes if "<" in route.path)
        self.in_flight = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; nothing gets out of here but cancellation."""
        self.in_flight += 1
        path, _, query = _target(request).partition("?")
        try:
            if not connection_of(request).seat.admitted:
                response = self._excess(path)
                response.force_close()
                return response
            response = await self._answer(request, path, query)
        except (LifecycleError, ImageError) as error:
            response = self._failed(request, path, error)
        except ConnectionError:
            raise
        except Exception:
            response = self._waiting.broken() if path in _FIRMWARE else answers.failure(AssertionError())[0]
            fields, what = _request(request, path, response), path if path in _FIRMWARE else "a request"
            log.exception("defect: %s was not answered", what, extra={"fields": fields})
        finally:
            self.in_flight -= 1
        if self._readiness.stopping and not response.prepared:
            response.force_close()
        return response

    async def script(self, query: str, seat: Seat, gone: Callable[[], bool]) -> PreparedResponse:
        """The answer to `GET` of `SCRIPT` on a connection that is not aiohttp's; what fails is raised."""
        self.in_flight += 1
        try:
            response = await self._scripts.boot(query, seat.address, gone) if seat.admitted else self._waiting.busy()
        finally:
            self.in_flight -= 1
        return self._finished(response, seat)

    def write_script(self, query: str, seat: Seat) -> Written | None:
        """Begin with the same; None: not so, or not at once, see `Scripts.write`."""
        written = self._scripts.write(query, seat.address) if seat.admitted else None
        self.in_flight += written is not None
        return written

    def script_written(self, written: Written, seat: Seat) -> PreparedResponse:
        """The answer, once that is `done`; what fails is raised."""
        self.in_flight -= 1
        return self._finished(self._scripts.written(written), seat)

    def _finished(self, response: PreparedResponse, seat: Seat) -> PreparedResponse:
        if self._readiness.stopping or not seat.admitted:
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest, path: str, query: str) -> web.StreamResponse:
        route, name = self._route(path)
        if route is None:
            return answers.not_found()
        handler = route.handlers.get(request.method)
        if handler is None:
            return answers.wrong_method(*route.handlers)
        answer = handler(Asked(request, name, query, connection_of(request).peer))
        return answer if isinstance(answer, web.StreamResponse) else await answer

    def _route(self, path: str) -> tuple[Route | None, str]:
        fixed = self._fixed.get(path)
        if fixed is not None:
            return fixed, ""
        names = ((route, route.name_in(path)) for route in self._patterns)
        return next(((route, name) for route, name in names if name is not None), (None, ""))

    def _excess(self, path: str) -> web.StreamResponse:
        if path in _FIRMWARE:
            return self._waiting.busy()
        return answers.failure(OverloadedError("too many connections"))[0]

    def _failed(self, request: web.BaseRequest, path: str, error: Exception) -> web.StreamResponse:
        response, row = answers.failure(error)
        if isinstance(error, BadClaimError | NoSuchBootError | TooOftenError):
            results = self._counters.of_report(path.rpartition("/")[2])
            results["limited" if isinstance(error, TooOftenError) else "refused"] += 1
        # The journal says so itself, once and not for each request.
        level = logging.DEBUG if isinstance(error, JournalUnavailableError) else row.level
        fields = {**_request(request, path, response), "code": row.code}
        log.log(level, "%s: %s: %s", connection_of(request).peer, row.code, row.text(error), extra={"fields": fields})
        return response


def _request(request: web.BaseRequest, path: str, response: web.StreamResponse) -> dict[str, str]:
    """What the log has of a request that failed. Its id is answered too; who succeeds, tens of thousands a second, has
    none."""
    known = logs.request_id(request.headers.get("X-Request-ID"))
    response.headers["X-Request-ID"] = known
    boot = path.split("/")[3] if path.startswith("/v1/boots/") else ""
    return {"request_id": known, "peer": connection_of(request).peer, **({"boot": boot} if is_shaped(boot) else {})}


def _reading(handler: Handler) -> dict[str, Handler]:
    return {"GET": handler, "HEAD": handler}


def _target(request: web.BaseRequest) -> str:
    """The request target; of the absolute form (RFC 9112, 3.2.2) the path."""
    target = request.raw_path
    if target.startswith("http://"):
        return "/" + target[7:].partition("/")[2]
    return target
