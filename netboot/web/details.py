"""What `/readyz` says of a process or loop, by when it was heard last."""

from netboot.lifecycle.errors import CannotTellError
from netboot.readiness import Detail
from netboot.status import FRESH_MS
from netboot.status.controllers import LoopStatus, RolloutsStatus, idle
from netboot.status.reporting import Reporting

LOG = "see the log of the controllers"


def old(quiet: int, cause: Detail) -> Detail:
    """What it said last is old, and that is not its fault."""
    message = f"what it said last is {quiet // 1000} s old, for nothing can be written: {cause.message}"
    return Detail(ok=False, message=message, remedy=cause.remedy)


def unsaid(cause: Detail) -> Detail:
    """It could not say anything yet."""
    return Detail(ok=False, message=f"what it says cannot be written: {cause.message}", remedy=cause.remedy)


def at_work(
    name: str,
    status: LoopStatus | Reporting | CannotTellError | None,
    now: int,
    cause: Detail | None,
    first: str = "",
) -> Detail:
    """Whether it goes on, by what it said last. `cause`: why nothing can be said; `first`: of the remedy where it is
    silent."""
    if status is None and cause is not None:
        return unsaid(cause)
    if status is None:
        return Detail(ok=False, message=idle(name, None, now), remedy=LOG)
    if isinstance(status, CannotTellError):
        remedy = "restart the service, so that all of its processes are of one version"
        return Detail(ok=False, message=str(status), remedy=remedy)
    quiet, why = now - status.up_ms, idle(name, status, now)
    if quiet > FRESH_MS and cause is not None:
        return old(quiet, cause)
    remedy = LOG if 0 <= quiet <= FRESH_MS and why else f"{first}{LOG}; `kill` that process to start it again"
    said = Detail(ok=not why, message=why or "at work", remedy=remedy)
    if not isinstance(status, RolloutsStatus) or status.leader is None:
        return said
    return Detail.model_validate(said.model_dump() | {"leader": status.leader.model_dump()})
