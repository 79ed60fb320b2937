"""Each request has an id: what it came with as `X-Request-ID`, or a new one; in the answer, and in each line of the log
about it (docs/logs.md)."""

from collections.abc import Callable

from flask import Flask, Response, g, request

from netboot import logs

HEADER = "X-Request-ID"
INSIDE = "netboot.page"
"""In the WSGI environment of a request that the page sends to the API while it answers one: what is logged after it is
about that again."""
REFUSED_AS = "refused_as"
"""Of a request: the status that it is refused with, where its answer has another one."""


def install(app: Flask, refused: Callable[[Response], None]) -> None:
    """For every request of `app`; before whatever else is asked before a request. `refused`: is shown each answer that
    is a refusal, last of all, while the log still knows the request."""

    def answer(response: Response) -> Response:
        if response.status_code >= 400 or REFUSED_AS in g:
            refused(response)
        response.headers[HEADER] = g.request_id
        return response

    app.before_request(_begin)
    app.after_request(answer)
    app.teardown_request(lambda _: logs.begin(**g.get("around", {})))


def _begin() -> None:
    g.around = logs.current() if INSIDE in request.environ else {}
    g.request_id = logs.request_id(request.headers.get(HEADER))
    named = request.view_args or {}
    of = {"boot": named.get("boot"), "machine": named.get("name") if "/machines/" in request.path else None}
    logs.begin(request_id=g.request_id, **{key: name for key, name in of.items() if name is not None})
