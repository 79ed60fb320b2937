"""Each request has an id: what it came with as `X-Request-ID`, or a new one; in the answer, and in each line of the log
about it (docs/logs.md)."""

from flask import Flask, Response, g, request

from netboot import logs

HEADER = "X-Request-ID"
INSIDE = "netboot.page"
"""In the WSGI environment of a request that the page sends to the API while it answers one: what is logged after it is
about that again."""


def install(app: Flask) -> None:
    """For every request of `app`; before whatever else is asked before a request."""
    app.before_request(_begin)
    app.after_request(_answer)
    app.teardown_request(lambda _: logs.begin(**g.get("around", {})))


def _begin() -> None:
    g.around = logs.current() if INSIDE in request.environ else {}
    g.request_id = logs.request_id(request.headers.get(HEADER))
    named = request.view_args or {}
    of = {"boot": named.get("boot"), "machine": named.get("name") if "/machines/" in request.path else None}
    logs.begin(request_id=g.request_id, **{key: name for key, name in of.items() if name is not None})


def _answer(response: Response) -> Response:
    response.headers[HEADER] = g.request_id
    return response
