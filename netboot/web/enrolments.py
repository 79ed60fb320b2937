"""Enrolment by operators: `/v1/enrolments`, `/v1/machines/<name>/enrolment`, `POST /v1/machines/<name>/<act>`."""

from operator import attrgetter
from typing import Annotated, Any, Literal

from flask import request
from pydantic import AfterValidator, StringConstraints

from images.values.strict import Fault, FaultsError, Strict
from images.values.types import Sha256
from netboot.join.ek_list import read_ek_list
from netboot.join.enrolment import Act, Approve, Entry, OpenWindow, Order, OrdersRefusedError, Release, Replace, Retire
from netboot.join.register import EnrolmentView
from netboot.lifecycle.errors import ActRefusedError, BadClaimError, NoSuchMachineError
from netboot.lifecycle.views import machine_named, pcr_policy
from netboot.machines.values import AssuranceLevel, Match
from netboot.web.binding import Shown
from netboot.web.dependencies import dependencies
from netboot.web.errors import FaultyError
from netboot.web.inputs import CSV, of_kind, one_line
from netboot.web.operators import audit, audit_each, operator, written
from netboot.web.pages import Paged
from netboot.web.preconditions import OF_MACHINE, alone
from netboot.web.selecting import SelectAsked, part
from netboot.web.windows import WindowSeconds, new_window, nowhere, until, useless

HISTORY_SHOWN = 20
LIST = CSV
LARGEST_LIST = 64 * 1024 * 1024
"""Bytes of a CSV: 30,000 machines with certificates."""

Reason = Annotated[str, StringConstraints(max_length=500, strip_whitespace=True), AfterValidator(one_line)]


class Window(Strict):
    """The body of `enroll`."""

    reason: Reason = ""
    window_seconds: WindowSeconds = 1800
    dry_run: bool = False


class Plain(Strict):
    """The body of `release` and `retire`."""

    reason: Reason = ""
    dry_run: bool = False


class Replacement(Plain):
    """The body of `replace`."""

    window_seconds: WindowSeconds = 1800
    part: Literal["tpm"]


class Approval(Strict):
    """The body of `approve`: what the operator was shown."""

    reason: Reason = ""
    ek_sha256: Sha256 | None
    revision: int | None = None
    dry_run: bool = False


class Importing(Strict):
    """Why, what the list is called in faults, and whether it is only looked at: `true` or `false`."""

    reason: Reason = ""
    dry_run: Literal["true", "false"] = "false"
    file: Annotated[str, StringConstraints(max_length=500), AfterValidator(one_line)] = "list"


class Imported(Shown):
    """`machines`: how many are in the list; `enrolled`: those that were not before; `dry_run`: as it would be."""

    machines: int
    enrolled: tuple[str, ...]
    dry_run: bool


class Enrolments(Paged):
    """By machine."""

    enrolments: tuple[EnrolmentView, ...]


class EnrolmentShown(Shown):
    """One machine's. `match`, `identity`: as the inventory has them; null where it is not in there."""

    enrolment: EnrolmentView
    match: Match | None
    identity: AssuranceLevel | None
    pcr_policy: str
    history: tuple[Entry, ...]


class EnrolmentActed(EnrolmentShown):
    """After an order. `did`: false where it was so already; `dry_run`: as it would be; `no_window`: why `replace` opens
    none, with what to do about it."""

    did: bool
    dry_run: bool
    no_window: str = ""


def listed(query: SelectAsked) -> Enrolments:
    """Machines' enrolments, by name."""
    found, more = part(query, dependencies().register.views(dependencies().clock.now_ms()), attrgetter("machine"))
    return Enrolments(enrolments=tuple(found), next_page=more)


def imported(query: Importing) -> Imported:
    """A list of EKs as CSV: all, or none and every fault."""
    deps, reason, file, dry_run = dependencies(), query.reason, query.file, query.dry_run == "true"
    of_kind(LIST)
    try:
        text = request.get_data(cache=False).decode("utf-8")
    except UnicodeDecodeError:
        raise BadClaimError("the list is not UTF-8 text") from None
    try:
        rows = read_ek_list(text, _nowhere(), file)
        orders: list[tuple[str, Order]] = [(row.machine, row.order) for row in rows]
        with alone((OF_MACHINE, name) for name, _ in orders):
            was = {view.machine: view for view in deps.register.views(deps.clock.now_ms())}
            act = Act(operator().who, reason)
            changes = deps.register.apply(orders, act, deps.clock.now_ms(), dry_run=dry_run)
    except FaultsError as error:
        raise FaultyError(error.faults) from None
    except OrdersRefusedError as error:
        faults = [Fault(file, rows[number].line, "", str(why)) for number, why in error.refusals]
        raise FaultyError(faults) from None
    enrolled = tuple(change.record.machine for change in changes if change.act)
    counts = {"machines": len(rows), "enrolled": len(enrolled)}
    answer = Imported(machines=len(rows), enrolled=enrolled, dry_run=dry_run)
    if answer.dry_run:
        return answer
    if not enrolled:
        audit("import", counts, reason=reason, changed=False)
        return answer
    with written("import", {**counts, "names": list(enrolled)}, reason=reason):
        now = {view.machine: view for view in deps.register.views(deps.clock.now_ms())}
    before, after = ({name: _to_keep(views.get(name)) for name in enrolled} for views in (was, now))
    audit_each("import", after, {}, reason, before=before, of_all=counts)
    return answer


def _nowhere() -> dict[str, str]:
    """Of each machine of the inventory, why it has nothing to join, as `nowhere` has it; "" too where its TPM is
    approved: a list may be sent again. One that is disabled may be in a list: it joins when it is enabled."""
    deps = dependencies()
    approved = {view.machine for view in deps.register.views(deps.clock.now_ms()) if view.state == "approved"}
    machines = deps.live.view().snapshot.inventory.machines
    return {each.name: "" if each.name in approved else nowhere(each) for each in machines}


def shown(name: str) -> EnrolmentShown:
    """One machine's, with its history."""
    return EnrolmentShown(**_answer(name))


def enroll(name: str, body: Window) -> EnrolmentActed:
    """Open a window in which its TPM may enrol on first use."""
    machine_named(dependencies().live.view(), name)
    if why := useless(name):
        raise ActRefusedError(why)
    order = OpenWindow("enrol", new_window(), until(body.window_seconds))
    return _do(name, order, body.reason, declared=True, dry_run=body.dry_run)


def approve(name: str, body: Approval) -> EnrolmentActed:
    """Let the TPM that was shown join; or bring a retired machine back, as it was before."""
    return _do(name, Approve(body.ek_sha256, body.revision), body.reason, declared=True, dry_run=body.dry_run)


def release(name: str, body: Plain) -> EnrolmentActed:
    """What its Lease says binds nobody any more."""
    return _do(name, Release(), body.reason, dry_run=body.dry_run)


def replace(name: str, body: Replacement) -> EnrolmentActed:
    """Its TPM has left it: that one is refused for ever, and a window opens for the next, if it could use one."""
    why = useless(name)
    order = Replace("", 0) if why else Replace(new_window(), until(body.window_seconds))
    acted = _do(name, order, body.reason, dry_run=body.dry_run)
    return acted.model_copy(update={"no_window": why})


def retire(name: str, body: Plain) -> EnrolmentActed:
    """Out of service: no tokens, no renewals."""
    return _do(name, Retire(), body.reason, dry_run=body.dry_run)


def _do(name: str, order: Order, reason: str, *, declared: bool = False, dry_run: bool = False) -> EnrolmentActed:
    """`declared`: only for machines of the inventory; else what is left of one that was taken out of it will do."""
    deps = dependencies()
    try:
        machine_named(deps.live.view(), name)
    except NoSuchMachineError:
        if declared or deps.register.store.record(name).revision == 0:
            raise
    now = deps.clock.now_ms()
    if dry_run:
        view, did = deps.register.would_be(name, order, now)
        return EnrolmentActed(**_answer(name, view), did=did, dry_run=True)
    was = deps.register.view(name, now)
    try:
        changes = deps.register.apply([(name, order)], Act(operator().who, reason), now)
    except OrdersRefusedError as error:
        raise error.refusals[0][1] from None
    act, did = _ACTS[type(order)], any(change.act for change in changes)
    with written(act, machine=name, reason=reason, before=_to_keep(was)):
        view = deps.register.view(name, deps.clock.now_ms())
    facts = {"state": view.state, "ek": view.ek_sha256 or ""}
    audit(act, facts, machine=name, reason=reason, before=_to_keep(was), after=_to_keep(view), changed=did)
    return EnrolmentActed(**_answer(name, view), did=did, dry_run=False)


def _to_keep(view: EnrolmentView | None) -> EnrolmentView | None:
    """As the audit has it: without keys and certificates, kilobytes of each machine that `ek_sha256` tells apart."""
    if view is None:
        return None
    less = view.details.model_copy(update={"ek_certificate": None, "ek_public": None})
    return view.model_copy(update={"details": less})


_ACTS = {OpenWindow: "enroll", Approve: "approve", Release: "release", Replace: "replace", Retire: "retire"}


def _answer(name: str, view: EnrolmentView | None = None) -> dict[str, Any]:
    """The fields of `EnrolmentShown`."""
    deps = dependencies()
    machine = deps.live.view().index.named(name)
    if machine is None and deps.register.store.record(name).revision == 0:
        machine_named(deps.live.view(), name)
    view = view or deps.register.view(name, deps.clock.now_ms())
    return {
        "enrolment": view,
        "match": machine.match if machine is not None else None,
        "identity": machine.identity if machine is not None else None,
        "pcr_policy": pcr_policy(machine) if machine is not None else "not in the inventory",
        "history": tuple(deps.register.store.history(name, HISTORY_SHOWN)),
    }
