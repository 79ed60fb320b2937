"""Who asks, and what they did: operators, by the bearer token that everything but health and metrics wants."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from flask import Response, g, request
from pydantic import BaseModel

from images.errors import ImageError, NotDurableError
from netboot.failures import answer_to
from netboot.lifecycle.errors import CannotTellError, DoneInPartError, LifecycleError
from netboot.stores.audit import Record
from netboot.web import inputs
from netboot.web.dependencies import dependencies
from netboot.web.operations import template
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


@contextmanager
def partly(
    act: str,
    facts: Mapping[str, object] | None = None,
    *,
    machine: str = "",
    reason: str = "",
    before: Stood = None,
    after: Stood = None,
    so_far: Callable[[], str] = str,
) -> Iterator[None]:
    """Around what may be done in part, which is recorded and answered then, and no refusal. `so_far()`: what is done by
    now, in words, empty: nothing; `after`: as the thing is, where it is written and a power cut may undo that.

    Raises:
        DoneInPartError.
    """
    try:
        yield
    except (LifecycleError, ImageError) as error:
        written_down = isinstance(error, NotDurableError)
        done, why = so_far(), answer_to(error).text(error)
        if not done and not written_down:
            raise
        log.warning("%s was done in part: %s", act, error)
        facts, stands = {**(facts or {}), "done": done, "not_done": why}, after if written_down else None
        _write(_record(act, machine, reason, "done-in-part", facts), before, stands, refused=False)
        g.setdefault("in_part", True)
        rest = why if written_down else f"the rest was not: {why}"
        raise DoneInPartError("; ".join(filter(None, (done, rest)))) from error


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


def audit_each(
    act: str,
    after: Mapping[str, Stood],
    facts: Mapping[str, object],
    reason: str,
    before: Mapping[str, Stood] | None = None,
    of_all: Mapping[str, object] | None = None,
) -> None:
    """The same of an act on many machines: one line of the log and one record with their number (`of_all`: what else is
    in that one), and a record of each; all of these are kept, or none. `before`, `after`: by machine."""
    wrote()
    whole = _record(act, "", reason, "done", {"machines": len(after), **facts, **(of_all or {})})
    stood = [{"before": _plain((before or {}).get(name)), "after": _plain(stands)} for name, stands in after.items()]
    each = [_record(act, machine, reason, "done", facts) for machine in after]
    kept = [one.model_copy(update=seen) for one, seen in zip(each, stood, strict=True)]
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
    said = response.get_json(silent=True) or {}
    code = str(said.get("code") or response.status_code)
    if code in _MAY_NOT or not inputs.dry_run():  # who may not is written down, whatever was sent
        done = "wrote" in g
        facts = _about(request.url_rule.rule)
        machine = facts.pop("machine", "")
        record = _record(f"{request.method} {template(request.url_rule.rule)}", machine, "", code, facts)
        _write(record, None, None, refused=not done)
    return response


_MAY_NOT = ("no-role", "not-allowed", "blocked")
"""Codes of who is refused whatever it is: other 403s are of the machine, and of a dry run they are its answer."""


def _about(rule: str) -> dict[str, str]:
    """What a refused act was to concern: by its path, and what its body names, as far as that can be read."""
    body = inputs.sent()
    found = {name: each for name in ("machine", "channel", "image") if isinstance(each := body.get(name), str)}
    for name, each in (request.view_args or {}).items():
        of = next((kind for part, kind in _KINDS.items() if part in rule), name) if name == "name" else name
        found[of] = str(each)
    return {name: _shown(each) for name, each in found.items()}


_KINDS = {"/machines/": "machine", "/channels/": "channel"}
"""Of what a path has the `name`."""


def _shown(name: str) -> str:
    """What may be anything, as terminals may show it: no second line, no control characters; a digest
    whole."""
    return "".join(c if c.isprintable() else "?" for c in name[:64])


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
