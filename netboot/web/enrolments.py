"""Enrolment by operators: `/v1/enrolments`, `/v1/machines/<name>/enrolment`, `POST /v1/machines/<name>/<act>`."""

import secrets
from typing import Annotated, Literal

from flask import Blueprint, Response, jsonify, request
from pydantic import Field, StringConstraints

from images.values.strict import Fault, FaultsError, Strict
from images.values.types import Sha256
from netboot.join.ek_list import read_ek_list
from netboot.join.enrolment import Act, Approve, OpenWindow, Order, OrdersRefusedError, Release, Replace, Retire
from netboot.join.register import EnrolmentView
from netboot.lifecycle.errors import BadClaimError, NoSuchMachineError
from netboot.lifecycle.views import machine_named
from netboot.machines.values import Machine
from netboot.web import query, render
from netboot.web.audit import audit
from netboot.web.auth import operator, protect
from netboot.web.body import parsed
from netboot.web.dependencies import dependencies
from netboot.web.errors import faulty

blueprint = Blueprint("enrolments", __name__)
protect(blueprint)

HISTORY_SHOWN = 20
LARGEST_LIST = 64 * 1024 * 1024
"""Bytes of a CSV: 30,000 machines with certificates."""

Reason = Annotated[str, StringConstraints(max_length=500, strip_whitespace=True)]
WindowSeconds = Annotated[int, Field(ge=60, le=86_400)]


class Plain(Strict):
    """The body of `release` and `retire`."""

    reason: Reason = ""


class Window(Plain):
    """The body of `enroll`."""

    window_seconds: WindowSeconds = 1800


class Replacement(Window):
    """The body of `replace`."""

    part: Literal["tpm"]


class Approval(Plain):
    """The body of `approve`: what the operator was shown."""

    ek_sha256: Sha256 | None
    revision: int | None = None


@blueprint.get("/v1/enrolments")
def listed() -> Response:
    """Every machine's."""
    query.only(())
    found = dependencies().register.views(dependencies().clock.now_ms())
    return jsonify({"enrolments": [render.plain(one) for one in found]})


@blueprint.post("/v1/enrolments")
def imported() -> Response:
    """A list of EKs as CSV: all, or none and every fault."""
    query.only(("reason", "file"))
    request.max_content_length = LARGEST_LIST
    mine, reason = dependencies(), request.args.get("reason", "").strip()
    file = request.args.get("file", "list")
    if len(reason) > 500 or len(file) > 500:
        raise BadClaimError("reason and file have at most 500 characters")
    try:
        text = request.get_data(cache=False).decode("utf-8")
    except UnicodeDecodeError:
        raise BadClaimError("the list is not UTF-8 text") from None
    names = {machine.name for machine in mine.live.view().snapshot.inventory.machines}
    try:
        rows = read_ek_list(text, names, file)
        orders: list[tuple[str, Order]] = [(row.machine, row.order) for row in rows]
        changed = mine.register.apply(orders, Act(operator().who, reason), mine.clock.now_ms())
    except FaultsError as error:
        return faulty(error.faults)
    except OrdersRefusedError as error:
        return faulty([Fault(file, rows[number].line, "", why) for number, why in error.refusals])
    audit("import", machines=len(rows), changed=sum(bool(one.act) for one in changed), reason=reason)
    return jsonify({"machines": len(rows), "enrolled": [one.record.machine for one in changed if one.act]})


@blueprint.get("/v1/machines/<name>/enrolment")
def shown(name: str) -> Response:
    """One machine's, with its history."""
    query.only(())
    return _answer(name)


@blueprint.post("/v1/machines/<name>/enroll")
def enroll(name: str) -> Response:
    """Open a window in which its TPM may enrol on first use."""
    body = parsed(Window)
    return _do(name, OpenWindow("enrol", new_window(), _until(body.window_seconds)), body.reason, declared=True)


@blueprint.post("/v1/machines/<name>/approve")
def approve(name: str) -> Response:
    """Let the TPM that was shown join; or bring a retired machine back."""
    body = parsed(Approval)
    return _do(name, Approve(body.ek_sha256, body.revision), body.reason, declared=True)


@blueprint.post("/v1/machines/<name>/release")
def release(name: str) -> Response:
    """What its Lease says binds nobody any more."""
    return _do(name, Release(), parsed(Plain).reason)


@blueprint.post("/v1/machines/<name>/replace")
def replace(name: str) -> Response:
    """Its TPM has left it: that one is refused for ever, and a window opens for the next."""
    body = parsed(Replacement)
    return _do(name, Replace(new_window(), _until(body.window_seconds)), body.reason)


@blueprint.post("/v1/machines/<name>/retire")
def retire(name: str) -> Response:
    """Out of service: no tokens, no renewals."""
    return _do(name, Retire(), parsed(Plain).reason)


def new_window() -> str:
    """An id that nobody can guess."""
    return secrets.token_hex(16)


def pcr_policy(machine: Machine) -> str:
    """The policy in words; its absence is said, not left out."""
    if not machine.pcrs:
        return "no PCR policy"
    return ", ".join(
        f"PCR {index}: {len(values)} allowed" for index, values in sorted(machine.pcrs.items(), key=_number)
    )


def _number(item: tuple[str, object]) -> int:
    return int(item[0])


def _until(seconds: int) -> int:
    return dependencies().clock.now_ms() + seconds * 1000


def _do(name: str, order: Order, reason: str, *, declared: bool = False) -> Response:
    """`declared`: only for machines of the inventory; else what is left of one that was taken out of it will do."""
    query.only(())
    mine = dependencies()
    try:
        machine_named(mine.live.view(), name)
    except NoSuchMachineError:
        if declared or mine.register.store.record(name).revision == 0:
            raise
    changed = mine.register.apply([(name, order)], Act(operator().who, reason), mine.clock.now_ms())
    view = mine.register.view(name, mine.clock.now_ms())
    facts = {"machine": name, "state": view.state, "ek": view.ek_sha256 or "", "reason": reason}
    audit(_ACTS[type(order)], **facts, changed=any(one.act for one in changed))
    return _answer(name, view)


_ACTS = {OpenWindow: "enroll", Approve: "approve", Release: "release", Replace: "replace", Retire: "retire"}


def _answer(name: str, view: EnrolmentView | None = None) -> Response:
    mine = dependencies()
    machine = mine.live.view().index.named(name)
    if machine is None and mine.register.store.record(name).revision == 0:
        machine_named(mine.live.view(), name)
    view = view or mine.register.view(name, mine.clock.now_ms())
    return jsonify(
        {
            "enrolment": render.plain(view),
            "match": render.plain(machine.match) if machine is not None else None,
            "identity": machine.identity if machine is not None else None,
            "pcr_policy": pcr_policy(machine) if machine is not None else "not in the inventory",
            "history": [render.plain(one) for one in mine.register.store.history(name, HISTORY_SHOWN)],
        }
    )
