"""`Idempotency-Key`: an act that is asked for again is not done again, and is answered as the first time.

By draft-ietf-httpapi-idempotency-key-header: again is by the same token, with the same key, for the same. Only what was
done, or done in part, is kept: after a refusal, or where it could not be told, an act that is asked for again is looked
at again, unless something of it was written before. An answer that may hold a secret is never kept.
"""

import hashlib
import logging
import re

from flask import Flask, Response, g, request

from netboot.lifecycle.errors import (
    AnswerNotKeptError,
    BadClaimError,
    CannotTellError,
    IdempotencyKeyReusedError,
    OutcomeUnknownError,
    StillRunningError,
)
from netboot.stores.idempotency import Begun, SqliteIdempotency
from netboot.web import errors, inputs
from netboot.web.dependencies import dependencies
from netboot.web.operators import operator

log = logging.getLogger(__name__)

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
"""Of an answer that is given again, as Stripe's API has it; the draft names none."""
PATTERN = r'^"[!#-\[\]-~]{1,128}"$'
"""A string of RFC 8941 without spaces and escapes: what two readers could take for two keys is none."""
_KEY = re.compile(PATTERN[:-1] + r"\Z")


def install(app: Flask) -> None:
    """For every act of `app`; after whatever decides whether who asks may act at all."""
    app.before_request(_begin)
    app.after_request(_end)
    app.teardown_request(_leave)


def _begin() -> Response | None:
    if request.method in ("GET", "HEAD", "OPTIONS") or "operator" not in g:
        return None
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not _KEY.match(key):
        raise BadClaimError('must be 1 to 128 printable characters in quotes, as "5f2c-41d0"', field=HEADER)
    if inputs.dry_run():  # nothing is done, so it may be asked for as often as anybody likes
        return None
    who, deps = operator().identity, dependencies()
    asked = _fingerprint()
    before = deps.idempotency.begin(who, key, asked, deps.steady.now_ms())
    if before is not None:
        return _again(before, asked, deps.idempotency.owner)
    g.idempotency = (deps.idempotency, who, key)
    return None


def _fingerprint() -> bytes:
    conditions = (request.headers.get("If-Match", ""), request.headers.get("If-None-Match", ""))
    parts = (request.method, request.full_path, *conditions, request.content_type or "")
    head = "\0".join(parts).encode("utf-8", "surrogateescape")
    return hashlib.sha256(hashlib.sha256(head).digest() + request.get_data()).digest()


def _again(before: Begun, asked: bytes, owner: str) -> Response:
    if before.request != asked:
        raise IdempotencyKeyReusedError("with this key something else was asked for before")
    if before.status is None and before.owner == owner:
        raise StillRunningError("the first request with this key is still being done")
    if before.status is None:
        raise OutcomeUnknownError("it was begun with this key, and nobody knows whether it was done")
    if before.answer is None:
        raise AnswerNotKeptError(f"it was done ({before.status}), and what was answered is not kept")
    g.setdefault("audited", True)  # when it was done
    kind = "application/json" if before.status < 300 else errors.MEDIA_TYPE
    return Response(before.answer, before.status, {REPLAYED: "true"}, mimetype=kind)


def _end(response: Response) -> Response:
    mine: tuple[SqliteIdempotency, str, str] | None = g.pop("idempotency", None)
    if mine is None:
        return response
    store, who, key = mine
    try:
        if response.status_code < 300 or "in_part" in g:
            secret = response.cache_control.no_store
            store.keep(who, key, response.status_code, None if secret else response.get_data())
        elif response.status_code == 500 or "wrote" in g:
            store.lose(who, key)
        else:
            store.forget(who, key)
    except CannotTellError as error:  # it is answered all the same; who asks again is told that nobody knows
        log.error("%s of this request is not kept: %s", HEADER, error)  # noqa: TRY400 - the words are all there is
        _leave_to_nobody(store, who, key)
    return response


def _leave(_error: BaseException | None) -> None:
    """A request that ended without an answer."""
    mine = g.pop("idempotency", None)
    if mine is not None:
        _leave_to_nobody(*mine)


def _leave_to_nobody(store: SqliteIdempotency, who: str, key: str) -> None:
    try:
        store.lose(who, key)
    except CannotTellError as error:
        log.error("%s of this request stays: %s", HEADER, error)  # noqa: TRY400 - the words are all there is
