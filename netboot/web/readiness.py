"""`/healthz`, `/readyz`: without a token. Ready: machines can boot now. Degraded: something wants attention."""

from typing import ClassVar, Literal, TypeVar

from flask import Response, jsonify

from images.values.strict import Strict
from netboot.clock import monotonic_ms
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import by_machine, marks_of
from netboot.readiness import Detail, Readiness, of_configuration
from netboot.status import FRESH_MS, Condition
from netboot.status.controllers import LifecycleStatus, ProjectionStatus, PublisherStatus, RolloutsStatus
from netboot.status.fetcher import FetcherStatus
from netboot.status.reporting import reporting_class
from netboot.status.supervisor import SupervisorStatus
from netboot.stores.journal_file import STANDING
from netboot.web import render
from netboot.web.binding import plain, shown
from netboot.web.bootable import Bootables
from netboot.web.dependencies import Dependencies, dependencies
from netboot.web.details import LOG, at_work, old, unsaid

S = TypeVar("S", bound=Strict)

LAG_RECORDS = 10_000
LEAST_ROOM = 16 * 2**20
"""Bytes free for `data`; less is said before anything fails."""
_NOT_KNOWN, _BOOTABLES = "not known yet", Bootables()
_SLOW = "it works at low priority: where the machine is saturated or its disk is slow, wait; else "


class Healthy(Strict):
    """That it answers at all."""

    http_kept: ClassVar[bool] = False
    healthy: Literal[True]


def healthy() -> Response:
    """This process answers."""
    return shown(Healthy(healthy=True))


def ready() -> Response:
    """Whether machines can boot now; and in every case, detail by detail, what is not as it should be."""
    readiness = assess(dependencies())
    response = jsonify(plain(readiness))
    response.status_code = 200 if readiness.ready else 503
    return render.uncached(response)


def assess(deps: Dependencies) -> Readiness:
    """The readiness of the whole service now, one detail for each thing that can be out of order.

    Ready is what lets machines boot: a snapshot, be it an old one, an image that can be used or is still to be set, and
    boot servers that answer, in a service that is not stopping. Connections to one that is down go to the others, or
    wait a moment; to one that hangs, they hang. Where the disk takes nothing, what processes say grows old, and nobody
    is judged by that.
    """
    snapshot, in_force = _snapshot(deps, deps.clock.now_ms())
    supervisor = said_by(deps, "supervisor", SupervisorStatus)
    publisher, projection = said_by(deps, "publisher", PublisherStatus), said_by(deps, "projection", ProjectionStatus)
    lifecycle, rollouts = said_by(deps, "lifecycle", LifecycleStatus), said_by(deps, "rollouts", RolloutsStatus)
    now = deps.up_ms()  # after what was said: what comes from later would be of before the machine's start
    provisioning, disk = _provisioning(deps), _disk(deps)
    cause = _cause(provisioning, disk)
    machines = _BOOTABLES.now(deps.live, fetches=_fetches(deps, supervisor))
    details = {
        "snapshot": snapshot,
        "machines": machines.detail,
        "provisioning": provisioning,
        "disk": disk,
        "processes": _processes(supervisor, cause),
        "publisher": at_work("publisher", publisher, now, cause),
        "projection": at_work("projection", projection, now, cause, _SLOW),
        "lifecycle": at_work("lifecycle", lifecycle, now, cause, _SLOW),
    }
    details["rollouts"] = at_work("rollouts", rollouts, now, cause, _SLOW)
    for name in ("inventory", "images", "bundle"):
        said = _condition(getattr(publisher, name)) if isinstance(publisher, PublisherStatus) else _not_known()
        details[name] = _as_of(details["publisher"], "publisher", said)
    said = _journals(projection) if isinstance(projection, ProjectionStatus) else _not_known()
    details["journals"] = _as_of(details["projection"], "projection", said)
    stopping, hanging = False, False
    if isinstance(supervisor, SupervisorStatus):
        if cause is None or _quiet(supervisor) <= FRESH_MS:
            hanging = any(each.problem for name, each in supervisor.processes.items() if name.startswith("boot-"))
        details |= _reporting(deps, sorted(supervisor.processes), cause)
        stopping = supervisor.state == "stopping"
        details["configuration"] = of_configuration(supervisor.changed)
    details["intents"] = _intents(deps)
    problem = deps.tokens.problem()
    details["token"] = Detail(ok=problem is None, message=problem or "in order", remedy="see management.token_file")
    return Readiness(
        ready=in_force and details["provisioning"].ok and not stopping and not hanging and not machines.nobody,
        degraded=not all(detail.ok for detail in details.values()),
        site=deps.site(),
        details=details,
    )


def _fetches(deps: Dependencies, supervisor: SupervisorStatus | CannotTellError | None) -> bool:
    """Whether an image that is not here is on its way, or may be. What nobody whom we trust has signed is not."""
    if not isinstance(supervisor, SupervisorStatus) or "fetcher" not in supervisor.processes:
        return False
    said = said_by(deps, "fetcher", FetcherStatus)
    return not isinstance(said, FetcherStatus) or bool(said.images)


def said_by(deps: Dependencies, process: str, model: type[S]) -> S | CannotTellError | None:
    """What a process, or a loop of the controllers, said last; None: nothing yet."""
    try:
        return deps.status.read(process, model)
    except CannotTellError as error:
        return error


def _snapshot(deps: Dependencies, now: int) -> tuple[Detail, bool]:
    """Its detail, and whether any snapshot is in force."""
    try:
        snapshot = deps.live.view().snapshot
    except CannotTellError as error:
        return Detail(ok=False, message=str(error), remedy=f"run `netboot config check`, and {LOG}"), False
    # A newer file that cannot be read leaves this one in force: machines boot, and somebody should look.
    counts = {"machines": len(snapshot.inventory.machines), "age_seconds": max(0, now - snapshot.published_ms) // 1000}
    problem = deps.live.problem
    detail = {"ok": problem is None, "message": problem or "in force", "remedy": "restart the service", **counts}
    return Detail.model_validate(detail), True


def _intents(deps: Dependencies) -> Detail:
    """Whether it can be told who is held or in quarantine: where it cannot, nobody joins."""
    try:
        marked = sum(bool(marks_of(each)) for each in by_machine(deps.intents.all(deps.clock.now_ms())).values())
    except CannotTellError as error:
        remedy = "restore data/intents.db from a backup, or remove it and restart the service: docs/acts.md"
        return Detail(ok=False, message=str(error), remedy=remedy)
    return Detail(ok=True, message=f"machines held or in quarantine: {marked}")


def _provisioning(deps: Dependencies) -> Detail:
    answer = deps.probe()
    return Detail(ok=answer.ok, message=answer.message, remedy="see the log of the boot servers")


def _disk(deps: Dependencies) -> Detail:
    free = deps.room()
    if free is None:
        return Detail(ok=False, message="cannot tell how much room `data` has", remedy="see whether its disk is there")
    enough = free >= LEAST_ROOM
    message = f"{free / 2**20:.0f} MiB free" + ("" if enough else ": what is to be written down soon cannot be")
    return Detail(ok=enough, message=message, remedy="free space on the file system of `data`")


def _cause(provisioning: Detail, disk: Detail) -> Detail | None:
    """Why what processes say cannot be written; None: it can."""
    if not disk.ok:
        return disk
    if STANDING in provisioning.message:
        return Detail(ok=False, message=STANDING, remedy="look at the disk of `data`")
    return None


def _quiet(supervisor: SupervisorStatus) -> int:
    return monotonic_ms() - supervisor.uptime_ms


def _processes(supervisor: SupervisorStatus | CannotTellError | None, cause: Detail | None) -> Detail:
    if supervisor is None and cause is not None:
        return unsaid(cause)
    if not isinstance(supervisor, SupervisorStatus):
        message = str(supervisor or "the supervisor has not said anything")
        return Detail(ok=False, message=message, remedy="start it with `netboot serve`")
    down = [
        f"{name} ({process.problem})" if process.problem else name
        for name, process in sorted(supervisor.processes.items())
        if not process.ready
    ]
    message = f"not ready: {', '.join(down)}" if down else "all ready"
    quiet, shown = _quiet(supervisor), {name: process.model_dump() for name, process in supervisor.processes.items()}
    if quiet > FRESH_MS and cause is not None and supervisor.state == "running":
        return Detail.model_validate({**old(quiet, cause).model_dump(), "processes": shown})
    if quiet > FRESH_MS:
        message = f"the supervisor has said nothing for {quiet // 1000} s: what dies now is not started again"
        down = ["supervisor"]
    if supervisor.state == "stopping":
        message = "the service is stopping"
    return Detail.model_validate(
        {
            "ok": not down and supervisor.state == "running",
            "message": message,
            "remedy": "see why in the log of the service; a supervisor that hangs has to be killed and started again",
            "processes": shown,
        }
    )


def _condition(status: Condition) -> Detail:
    return Detail.model_validate(status.model_dump(mode="json", exclude={"at_ms", "up_ms"}))


def _as_of(sayer: Detail, name: str, said: Detail) -> Detail:
    """What a loop said; where that one (`sayer`) is not in order, as what it said last."""
    if sayer.ok or said.message == _NOT_KNOWN:
        return said
    last = f"last known: {said.message}; {name}: {sayer.message}"
    return said.model_copy(update={"ok": False, "message": last, "remedy": sayer.remedy})


def _not_known() -> Detail:
    return Detail(ok=False, message=_NOT_KNOWN, remedy=LOG)


def _reporting(deps: Dependencies, processes: list[str], cause: Detail | None) -> dict[str, Detail]:
    """What join, approvers, node collectors and the fetcher say; none is vital: what is here boots without them."""
    details = {}
    for name in processes:
        model = reporting_class(name)
        if model is not None:
            status = said_by(deps, name, model)
            alive = at_work(name, status, deps.up_ms(), cause)
            details[name] = _condition(status) if alive.ok and isinstance(status, Condition) else alive
    return details


def _journals(status: ProjectionStatus) -> Detail:
    behind = sum(status.lag_records.values())
    message = "taken over" if behind <= LAG_RECORDS else f"{behind} records wait to be taken over"
    remedy = "wait; if it grows, give the machine more CPU"
    if status.replaced:
        message += f"; read again, for it was replaced by an older copy of itself: {', '.join(sorted(status.replaced))}"
    if status.set_aside:
        rows = ", ".join(f"{origin} {count}" for origin, count in sorted(status.set_aside.items()))
        message = f"rows were set aside: {rows}"
        remedy = "see why in the table `set_aside` of data/state.db, and docs/operations.md; then restart the service"
    if status.problems:
        message, remedy = "; ".join(status.problems.values()), "check the disk, and the log of the controllers"
    ok = behind <= LAG_RECORDS and not status.problems and not status.set_aside
    counts = {
        "lag_records": status.lag_records,
        "problems": status.problems,
        "set_aside": status.set_aside,
        "replaced": status.replaced,
    }
    return Detail.model_validate({"ok": ok, "message": message, "remedy": remedy, **counts})
