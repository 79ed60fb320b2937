"""`POST /v1/join/hello` and `/v1/join/attest`: bodies in, answers out; nothing of a request goes further down."""

import math
from typing import Any, TypeVar

from flask import Blueprint, Response, jsonify, request
from werkzeug.exceptions import RequestEntityTooLarge

from netboot.join import messages
from netboot.join.attest import attest
from netboot.join.fallback import plain_address
from netboot.join.hello import hello
from netboot.lifecycle.errors import OverloadedError
from netboot.web import errors, render
from netboot.web.join.limits import Buckets
from netboot.web.join.parts import desk

LONGEST_DRAINED = 4 * 1024 * 1024

blueprint = Blueprint("join", __name__)
M = TypeVar("M", messages.Hello, messages.Attest)


@blueprint.post("/v1/join/hello")
def answer_hello() -> Response:
    """A challenge for the machine's TPM."""
    late = _limited(desk().hellos)
    if late is not None:
        return late
    return _answered(hello(desk().parts, _message(messages.Hello, messages.LONGEST_HELLO), _peer()).as_json())


@blueprint.post("/v1/join/attest")
def answer_attest() -> Response:
    """The token, in the body of this one answer."""
    late = _limited(desk().attests)
    if late is not None:
        return late
    return _answered(attest(desk().parts, _message(messages.Attest, messages.LONGEST_ATTEST), _peer()).as_json())


def _message(model: type[M], longest: int) -> M:
    request.max_content_length = longest
    if desk().stopping():
        raise OverloadedError("the service is stopping")
    try:
        data = request.get_data(cache=False)
    except RequestEntityTooLarge:
        _drain()
        raise
    return messages.read(data, model)


def _drain() -> None:
    """Take what is still being sent, up to a bound: a client that is cut while it sends never reads why."""
    source, left = request.environ["wsgi.input"], LONGEST_DRAINED
    while left > 0 and (piece := source.read(min(left, 65536))):
        left -= len(piece)


def _limited(buckets: Buckets) -> Response | None:
    wait = buckets.wait(_peer())
    if not wait:
        return None
    response = errors.error(429, "too-often", "this address asks too often", "wait as long as Retry-After says")
    response.headers["Retry-After"] = str(math.ceil(wait))
    return render.uncached(response)


def _peer() -> str:
    """The address of the connection's other end; what a header says of it is nobody's business here."""
    return plain_address(str(request.environ.get("REMOTE_ADDR", "")))


def _answered(body: dict[str, Any]) -> Response:
    return render.uncached(jsonify(body))
