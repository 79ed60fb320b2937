"""A boot server's requests: from a path to its handler, and from a failure to its answer.

The path is taken as it came, never decoded: what is encoded, has dots or doubled slashes is simply not one of ours.
"""

import logging
from collections.abc import Callable

from aiohttp import web

from images.errors import ImageError
from netboot.boot import answers
from netboot.boot.artifacts import Artifacts
from netboot.boot.events import Events
from netboot.boot.health import Health
from netboot.boot.limits import connection_of
from netboot.boot.nonces import Nonces
from netboot.boot.readiness import Readiness
from netboot.boot.scripts import Scripts
from netboot.lifecycle.errors import BadClaimError, LifecycleError, NoSuchBootError, OverloadedError

log = logging.getLogger(__name__)

_READING = ("GET", "HEAD")
_FIRMWARE = frozenset({"/boot.ipxe", "/v1/boot"})


class App:
    """The handler of every request. `in_flight`: those not yet answered."""

    def __init__(
        self,
        scripts: Scripts,
        artifacts: Artifacts,
        events: Events,
        health: Health,
        nonces: Nonces,
        readiness: Readiness,
    ) -> None:
        self._scripts, self._events, self._health = scripts, events, health
        self._nonces, self._readiness = nonces, readiness
        self._files = (
            ("/v1/blobs/", artifacts.blob),
            ("/v1/images/", artifacts.image),
            ("/v1/site/", artifacts.site),
        )
        self._fixed: dict[str, Callable[[], web.StreamResponse]] = {
            "/boot.ipxe": scripts.chain,
            "/healthz": readiness.healthy,
            "/readyz": readiness.ready,
        }
        self.in_flight = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; nothing gets out of here but cancellation."""
        self.in_flight += 1
        path, _, query = _target(request).partition("?")
        try:
            if not connection_of(request).admitted:
                response = self._excess(path)
                response.force_close()
                return response
            response = await self._route(request, path, query)
        except (LifecycleError, ImageError) as error:
            response = self._failed(request, path, error)
        except ConnectionError:
            raise
        except Exception:
            log.exception("defect: %s was not answered", path if path in _FIRMWARE else "a request")
            response = self._scripts.broken() if path in _FIRMWARE else answers.failure(AssertionError())[0]
        finally:
            self.in_flight -= 1
        if self._readiness.stopping and not response.prepared:
            response.force_close()
        return response

    async def _route(self, request: web.BaseRequest, path: str, query: str) -> web.StreamResponse:
        if path == "/v1/boot" and request.method == "GET":
            return await self._scripts.boot(query, connection_of(request).peer)
        if path.startswith("/v1/boots/"):
            return await self._of_boot(request, path, query)
        for prefix, handler in self._files:
            if path.startswith(prefix):
                if request.method not in _READING:
                    return answers.wrong_method(*_READING)
                return await handler(request, path[len(prefix) :], query)
        answer = self._fixed.get(path)
        if answer is None:
            return answers.wrong_method("GET") if path == "/v1/boot" else answers.not_found()
        return answer() if request.method in _READING else answers.wrong_method(*_READING)

    async def _of_boot(self, request: web.BaseRequest, path: str, query: str) -> web.StreamResponse:
        boot_id, _, last = path[10:].partition("/")
        if last == "nonce":
            if request.method != "GET":
                return answers.wrong_method("GET")
            return self._nonces.nonce(boot_id, query, connection_of(request).peer)
        if last == "health":
            if request.method == "GET":
                return self._health.expected(boot_id, query)
            if request.method != "POST":
                return answers.wrong_method("GET", "POST")
            return await self._health.reported(request, boot_id)
        if last != "events":
            return answers.not_found()
        if request.method != "POST":
            return answers.wrong_method("POST")
        return await self._events.reported(request, boot_id)

    def _excess(self, path: str) -> web.StreamResponse:
        if path in _FIRMWARE:
            return self._scripts.busy()
        return answers.failure(OverloadedError("too many connections"))[0]

    def _failed(self, request: web.BaseRequest, path: str, error: Exception) -> web.StreamResponse:
        response, row = answers.failure(error)
        if isinstance(error, BadClaimError | NoSuchBootError):
            (self._health if path.endswith("/health") else self._events).count_refused()
        log.log(row.level, "%s: %s: %s", connection_of(request).peer, row.code, row.text(error))
        return response


def _target(request: web.BaseRequest) -> str:
    """The request target; of the absolute form (RFC 9112, 3.2.2) the path."""
    target = request.raw_path
    if target.startswith("http://"):
        return "/" + target[7:].partition("/")[2]
    return target
