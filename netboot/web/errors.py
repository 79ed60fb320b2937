"""Failures as problem details (RFC 9457), by the one table `netboot.failures`; for machines as they know them."""

import logging
from collections.abc import Callable, Iterable
from typing import Annotated, NamedTuple

from flask import Flask, Response, g, jsonify, request
from pydantic import Field
from werkzeug.exceptions import HTTPException, InternalServerError

from images.values.strict import Fault, Strict
from netboot.failures import UNEXPECTED, answer_to
from netboot.lifecycle.errors import BadClaimError, OutcomeUnknownError

log = logging.getLogger(__name__)

MOST_FAULTS = 1000
MEDIA_TYPE = "application/problem+json"
TYPE = "tag:netboot.dev,2026:problem/"
"""What a problem's `type` begins with; its `code` is the rest. A tag (RFC 4151): there is nothing to be fetched."""
_MANAGEMENT = "docs/http-management.md"

_AGAIN = "try again, later each time"
_REMEDIES = {
    404: "see {page} for what there is",
    405: "see {page} for what there is",
    408: _AGAIN,
    413: "send less",
    415: "send it with that Content-Type",
    429: _AGAIN,
    500: UNEXPECTED.remedy,
    501: "see {page} for what there is",
    502: _AGAIN,
    503: _AGAIN,
    504: _AGAIN,
    505: "ask in HTTP/1.1",
}
"""By status, of what is refused before a view of ours is asked; of any other the request is to blame."""


class Problem(Strict):
    """Why a request was not answered as asked (RFC 9457). `title`: of all with that `code`; `detail`: of this one;
    `instance`: the request's id, as in `X-Request-ID` and in the log; `remedy`: what to do; `field`: the value of the
    request that is to blame; `faults`: of a list, every one."""

    type: Annotated[str, Field(pattern="^tag:")]
    title: str
    status: int
    detail: str
    instance: str
    code: str
    remedy: str
    field: str | None = Field(None, exclude_if=lambda field: field is None)
    faults: tuple[str, ...] | None = Field(None, exclude_if=lambda faults: faults is None)


class Failure(NamedTuple):
    """What is said of a failure, in whichever form; see `Problem`."""

    status: int
    code: str
    title: str
    detail: str
    remedy: str
    field: str | None = None
    faults: tuple[str, ...] | None = None


class FaultyError(Exception):
    """A list, or files, with faults: every one of them, each a line."""

    def __init__(self, faults: Iterable[Fault], remedy: str = "correct the list, and send it whole") -> None:
        self.lines = [str(fault)[:500] for fault in faults]
        self.remedy = remedy
        super().__init__(f"{len(self.lines)} fault{'s' if len(self.lines) != 1 else ''}; nothing was changed")


Form = Callable[[Failure], Response]


def problem(failure: Failure) -> Response:
    """For operators."""
    said = Problem(type=TYPE + failure.code, instance=g.request_id, **failure._asdict())
    return Response(said.model_dump_json() + "\n", failure.status, mimetype=MEDIA_TYPE)


def plain(failure: Failure) -> Response:
    """For machines, whose agents know no other."""
    error = {"code": failure.code, "message": failure.detail, "remedy": failure.remedy}
    response = jsonify({"error": error | ({"field": failure.field} if failure.field is not None else {})})
    response.status_code = failure.status
    return response


def install(app: Flask, page: str = _MANAGEMENT, form: Form = problem) -> None:
    """Answer every failure of `app` in that form; `page` says what there is to ask for."""
    app.register_error_handler(HTTPException, lambda exception: _of_http(exception, page, form))
    app.register_error_handler(FaultyError, lambda error: form(_of_faulty(error)))
    app.register_error_handler(Exception, lambda exception: _of_anything(exception, form))


def _of_faulty(error: FaultyError) -> Failure:
    title, faults = "what was sent has faults", tuple(error.lines[:MOST_FAULTS])
    return Failure(422, "faults", title, str(error), error.remedy, faults=faults)


def _of_http(exception: HTTPException, page: str, form: Form) -> Response:
    if isinstance(exception, InternalServerError) and isinstance(exception.original_exception, Exception):
        return _of_anything(exception.original_exception, form)  # a defect beside the views
    status = exception.code or 500
    name = exception.name or "error"
    remedy = _REMEDIES.get(status, "correct the request").format(page=page)
    detail = exception.description or name
    response = form(Failure(status, name.lower().replace(" ", "-"), name, detail, remedy))
    for header, content in exception.get_headers():
        if header.lower() == "allow":
            response.headers[header] = content
    return response


def _of_anything(exception: Exception, form: Form) -> Response:
    answer = answer_to(exception)
    if answer.level >= logging.WARNING:
        # words that may name our files go to the log; the client gets them where they were written for both
        fields = {"method": request.method, "path": request.path, "status": answer.status}
        if answer.status >= 500 and answer.code == "internal":
            log.error("%s", answer.message, exc_info=exception, extra={"fields": fields})
        else:
            log.log(answer.level, "%s", exception, extra={"fields": fields})
    if "wrote" in g and answer is not UNEXPECTED:
        exception = OutcomeUnknownError(f"it was written, and what it came to cannot be told: {answer.text(exception)}")
        answer = answer_to(exception)
    field = exception.field if isinstance(exception, BadClaimError) and exception.field else None
    text = answer.text(exception)
    response = form(Failure(answer.status, answer.code, answer.message, text, answer.remedy, field))
    if answer.retry_after is not None:
        response.headers["Retry-After"] = str(answer.retry_after)
    if answer.status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="netboot"'
    return response
