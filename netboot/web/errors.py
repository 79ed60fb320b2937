"""Failures as JSON: `{"error": {"code", "message", "remedy"}}`, by the one table `netboot.failures`."""

import json
import logging
from collections.abc import Iterable

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from images.values.strict import Fault
from netboot.failures import answer_to
from netboot.lifecycle.errors import BadClaimError

log = logging.getLogger(__name__)

MOST_FAULTS = 1000

_REMEDIES = {
    413: "send less",
    415: "send JSON, with Content-Type: application/json",
}


def install(app: Flask, page: str = "docs/http-management.md") -> None:
    """Answer every failure of `app` in that form; `page` says what there is to ask for."""
    app.register_error_handler(HTTPException, lambda exception: _of_http(exception, page))
    app.register_error_handler(Exception, _of_anything)


def error(status: int, code: str, message: str, remedy: str, **more: str) -> Response:
    """A failure in the one form."""
    response = jsonify({"error": {"code": code, "message": message, "remedy": remedy, **more}})
    response.status_code = status
    return response


def faulty(faults: Iterable[Fault], remedy: str = "correct the list, and send it whole") -> Response:
    """A list with faults: every one of them, in `error.faults`."""
    lines = [str(fault)[:500] for fault in faults]
    message = f"{len(lines)} fault{'s' if len(lines) != 1 else ''}; nothing was changed"
    response = error(422, "faults", message, remedy)
    body = response.get_json()
    body["error"]["faults"] = lines[:MOST_FAULTS]
    response.data = json.dumps(body)
    return response


def _of_http(exception: HTTPException, page: str) -> Response:
    status = exception.code or 500
    code = (exception.name or "error").lower().replace(" ", "-")
    remedy = f"see {page} for what there is" if status in (404, 405) else _REMEDIES.get(status, "correct the request")
    response = error(status, code, exception.description or exception.name, remedy)
    for name, content in exception.get_headers():
        if name.lower() == "allow":
            response.headers[name] = content
    return response


def _of_anything(exception: Exception) -> Response:
    answer = answer_to(exception)
    if answer.level >= logging.WARNING:
        # words that may name our files go to the log; the client gets them where they were written for both
        fields = {"method": request.method, "path": request.path, "status": answer.status}
        if answer.status >= 500 and answer.code == "internal":
            log.error("%s", answer.message, exc_info=exception, extra={"fields": fields})
        else:
            log.log(answer.level, "%s", exception, extra={"fields": fields})
    field = {"field": exception.field} if isinstance(exception, BadClaimError) and exception.field else {}
    response = error(answer.status, answer.code, answer.text(exception), answer.remedy, **field)
    if answer.retry_after is not None:
        response.headers["Retry-After"] = str(answer.retry_after)
    if answer.status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="netboot"'
    return response
