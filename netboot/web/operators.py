"""Who asks, and what they did: operators, by the bearer token that everything but health and metrics wants."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from flask import Response, g, request
from pydantic import BaseModel

from netboot.lifecycle.errors import CannotTellError
from netboot.stores.audit import Record
from netboot.web import inputs
from netboot.web.dependencies import dependencies
from netboot.web.tokens import Operator

Stood = BaseModel | Mapping[str, Any] | None
log = logging.getLogger("netboot.audit")
refusals = logging.getLogger("netboot.audit.refused")


def operator() -> Operator:
    """Who sent this request. Asked once a request: what was begun under a token that is taken back meanwhile is still
    done, answered and written down as that operator's.

    Raises:
        NotAuthenticatedError: no operator did. NoTokensError: nobody can be let in at the moment.
    """
    if "operator" not in g:
        g.operator = dependencies().tokens.operator(request.headers.get("Authorization"))
    who = g.operator
    assert isinstance(who, Operator)
    return who


def wrote() -> None:
    """Of what this request asks for something is done, whatever fails from now on."""
    g.wrote = True


@contextmanager
def written(
    act: str,
    facts: Mapping[str, object] | None = None,
    *,
    machine: str = "",
    reason: str = "",
    before: Stood = None,
) -> Iterator[None]:
    """Around what is read again once an act is written: where that cannot be told, the act is recorded all the same."""
    wrote()
    try:
        yield
    except CannotTellError:
        audit(act, facts, machine=machine, reason=reason, before=before)
        raise


def audit(
    act: str,
    facts: Mapping[str, object] | None = None,
    *,
    machine: str = "",
    reason: str = "",
    before: Stood = None,
    after: Stood = None,
    changed: bool = True,
    whole: bool = True,
) -> None:
    """The record of an act, once it is done: a line of the log, and kept. No secret is in it.

    `before`, `after`: what the act concerns, as it was and as it is; None: there is nothing. `changed` False: it was so
    already. `facts`: what else belongs to it. `whole` False: what was asked for is yet to be done, and may be asked for
    again.
    """
    if whole:
        wrote()
    result = "done" if changed else "unchanged"
    _write(_record(act, machine, reason, result, facts or {}), before, after, refused=False)


def audit_each(act: str, after: Mapping[str, Stood], facts: Mapping[str, object], reason: str) -> None:
    """The same of an act on many machines that came into being by it: one line of the log and one record with their
    number, and a record of each; all of these are kept, or none. `after`: by machine, as it is."""
    wrote()
    whole = _record(act, "", reason, "done", {"machines": len(after), **facts})
    each = [_record(act, machine, reason, "done", facts) for machine in after]
    kept = [one.model_copy(update={"after": _plain(stands)}) for one, stands in zip(each, after.values(), strict=True)]
    _log(whole, refused=False)
    _keep([*kept, whole], refused=False)


def refused(response: Response) -> Response:
    """The same of an act of somebody we know that came to nothing; for `after_request`."""
    if request.method in ("GET", "HEAD", "OPTIONS") or "operator" not in g or "audited" in g:
        return response
    if response.status_code in (400, 413, 415):  # nobody can tell what was meant: no act
        return response
    if response.status_code < 400 or request.url_rule is None:
        return response
    if response.status_code == 403 or not inputs.dry_run():  # who may not is written down, whatever was sent
        said = response.get_json(silent=True) or {}
        code = str(said.get("code") or response.status_code)
        done = "wrote" in g
        machine = _shown((request.view_args or {}).get("name", "")) if "/machines/" in request.url_rule.rule else ""
        _write(
            _record(f"{request.method} {request.url_rule.rule}", machine, "", code, {}), None, None, refused=not done
        )
    return response


def _shown(name: str) -> str:
    """What may be anything, as terminals may show it: no second line, no control characters."""
    return "".join(c if c.isprintable() else "?" for c in name[:63])


def _record(act: str, machine: str, reason: str, result: str, facts: Mapping[str, object]) -> Record:
    who = operator()
    return Record(
        at_ms=dependencies().clock.now_ms(),
        who=who.who,
        role=who.role,
        token=who.fingerprint,
        peer=request.remote_addr or "",
        request_id=g.request_id,
        act=act,
        machine=machine,
        reason=reason,
        result=result,
        facts={**({"issuer": who.issuer} if who.issuer else {}), **facts},
    )


def _plain(value: Stood) -> dict[str, Any] | None:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return dict(value) if value is not None else None


def _write(record: Record, before: Stood, after: Stood, *, refused: bool) -> None:
    _log(record, refused=refused)
    _keep([record.model_copy(update={"before": _plain(before), "after": _plain(after)})], refused=refused)


def _log(record: Record, *, refused: bool) -> None:
    who = {"act": record.act, "operator": record.who, "role": record.role, "token": record.token}
    about = {"peer": record.peer} | ({"machine": record.machine} if record.machine else {})
    came = record.facts | {"reason": record.reason, "result": record.result, "changed": record.result == "done"}
    (refusals if refused else log).info("audit", extra={"fields": who | about | came})


def _keep(records: Sequence[Record], *, refused: bool) -> None:
    g.setdefault("audited", True)
    try:
        dependencies().audit.write(*records, refused=refused)
    except CannotTellError as error:  # it is done, and in the log
        log.error("audit: %s is in this log alone: %s", records[-1].act, error)  # noqa: TRY400 - the words are all there is
