"""The join server's application: `hello`, `attest` and the health of this process. Bodies in, answers out; nothing of
a request goes further down."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from flask import Flask, Response, current_app, jsonify, request

from netboot.addresses import plain_address
from netboot.join import messages
from netboot.join.attest import attest
from netboot.join.exchange import Exchange
from netboot.join.hello import hello
from netboot.lifecycle.errors import CannotTellError, OverloadedError
from netboot.status.join import JoinReadiness
from netboot.web import errors, refusals, render
from netboot.web.join.limits import Buckets
from netboot.web.join.preflight import CheckedClusters
from netboot.web.refusals import Refusals

EXTENSION = "netboot.join"

M = TypeVar("M", messages.Hello, messages.Attest)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What the views work with. `hellos`, `attests`: how often an address may ask for each. `problems()`: what is wrong
    with this process's own files and journal, in words. `stopping()`: whether it was told to end."""

    exchange: Exchange
    clusters: CheckedClusters
    hellos: Buckets
    attests: Buckets
    problems: Callable[[], list[str]]
    stopping: Callable[[], bool]
    refusals: Refusals


def answer_hello() -> Response:
    """A challenge for the machine's TPM."""
    deps = _dependencies()
    too_often = _limited(deps.hellos)
    if too_often is not None:
        return too_often
    return _answered(hello(deps.exchange, _message(messages.Hello, messages.LONGEST_HELLO), _peer()).as_json())


def answer_attest() -> Response:
    """The token, in the body of this one answer."""
    deps = _dependencies()
    too_often = _limited(deps.attests)
    if too_often is not None:
        return too_often
    return _answered(attest(deps.exchange, _message(messages.Attest, messages.LONGEST_ATTEST), _peer()).as_json())


def healthy() -> Response:
    """This process answers."""
    return _answered({"healthy": True})


def ready() -> Response:
    """200: machines of every cluster can join through this process; else 503 with what stands in the way."""
    state = readiness(_dependencies())
    response = _answered(state.model_dump(mode="json", exclude={"clusters": {"__all__": {"remedy"}}}))
    response.status_code = 200 if state.ready else 503
    return response


ROUTES = (
    ("POST", "/v1/join/hello", answer_hello),
    ("POST", "/v1/join/attest", answer_attest),
    ("GET", "/healthz", healthy),
    ("GET", "/readyz", ready),
)
"""Everything that there is to ask for: docs/http-join.md."""


def create_app(dependencies: Dependencies) -> Flask:
    """The application; every request finds `dependencies` in it."""
    app = Flask("netboot.web.join", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = messages.LONGEST_ATTEST
    app.extensions[EXTENSION] = dependencies
    errors.install(app, "docs/http-join.md", errors.plain)
    refusals.install(app, dependencies.refusals)
    for method, path, view in ROUTES:
        app.add_url_rule(path, f"{method} {path}", view, methods=[method])
    return app


def readiness(dependencies: Dependencies) -> JoinReadiness:
    """Whether machines of every cluster can join through this process now."""
    problems = dependencies.problems()
    try:
        dependencies.exchange.view()
    except CannotTellError as error:
        problems.append(str(error))
    clusters = dependencies.clusters.status()
    problems += [cluster.message for cluster in clusters.values() if not cluster.ok]
    if not clusters:
        problems.append("no cluster is configured: add `clusters` to netboot.yaml")
    if dependencies.stopping():
        problems.insert(0, "the service is stopping")
    return JoinReadiness(ready=not problems, problems=tuple(problems), clusters=clusters)


def _dependencies() -> Dependencies:
    return cast("Dependencies", current_app.extensions[EXTENSION])


def _message(model: type[M], longest: int) -> M:
    request.max_content_length = longest
    if _dependencies().stopping():
        raise OverloadedError("the service is stopping")
    return messages.read(request.get_data(cache=False), model)


_SAID = "this address asks too often"
_TOO_OFTEN = errors.Failure(429, "too-often", _SAID, _SAID, "wait as long as Retry-After says")


def _limited(buckets: Buckets) -> Response | None:
    seconds = buckets.wait(_peer())
    if not seconds:
        return None
    response = errors.plain(_TOO_OFTEN)
    response.headers["Retry-After"] = str(math.ceil(seconds))
    return render.uncached(response)


def _peer() -> str:
    """The address of the connection's other end; what a header says of it is nobody's business here."""
    return plain_address(str(request.environ.get("REMOTE_ADDR", "")))


def _answered(body: dict[str, Any]) -> Response:
    return render.uncached(jsonify(body))
