"""`/v1/machines/<name>/explain?boot=`: what was decided for a boot that there was, from what was written down then."""

from typing import Any

from netboot.lifecycle.conditions import MachineCondition
from netboot.lifecycle.errors import CannotTellError, NoSuchBootError
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType
from netboot.lifecycle.trace import Trace
from netboot.web import render
from netboot.web.dependencies import Dependencies

_NOT_KEPT = (
    "what was decided from has changed between its script and the moment at which it proved itself, or it is longer "
    "ago than is kept"
)


def explained(deps: Dependencies, name: str, boot: str) -> dict[str, Any]:
    """Script, image, what assigned it, token, approval, gate.

    Raises:
        NoSuchBootError: it was never heard of, is longer ago than is kept, or is another machine's.
    """
    trace = deps.states.boot(boot)
    if trace is None:
        raise NoSuchBootError("never heard of, or longer ago than is kept")
    if trace.machine != name:
        raise NoSuchBootError(f"it is a boot of {trace.machine}")
    decided, why_not = _decided(deps, trace)
    return {
        "boot": boot,
        "machine": name,
        "standing": render.trace(trace)["standing"],
        "script": trace.script.model_dump(mode="json") if trace.script is not None else None,
        "decided": decided,
        "decided_problem": why_not,
        **{key: _fact(trace, phase) for key, phase in _FACTS.items()},
        "gate": _gate(deps, trace),
    }


_FACTS = {"attested": Phase.ATTESTED, "token": Phase.TOKEN_ISSUED, "approval": Phase.CSR_APPROVED}


def _decided(deps: Dependencies, trace: Trace) -> tuple[dict[str, Any] | None, str | None]:
    """The decision as it was kept, or why there is none."""
    if trace.script is None:
        return None, "the record of its script has not been seen (yet)"
    if not trace.script.decision:
        return None, "it was served by a netboot that kept no decisions"
    if not _proven(trace):
        return None, "it has not proven itself: decisions are kept of boots that have"
    try:
        decided = deps.history.decided(trace.script.decision)
    except CannotTellError as error:
        return None, str(error)
    return (render.plain(decided), None) if decided is not None else (None, _NOT_KEPT)


def _proven(trace: Trace) -> bool:
    return trace.last_observed is not None


def _fact(trace: Trace, phase: Phase) -> dict[str, Any] | None:
    reached = trace.phase(phase)
    return {"at_ms": reached.at_ms, "detail": reached.detail, "peer": reached.peer} if reached is not None else None


def _gate(deps: Dependencies, trace: Trace) -> dict[str, Any]:
    """When it was first in service; and how the gate is now, where it is the machine's current boot."""
    try:
        in_service_ms = deps.history.in_service([trace.boot]).get(trace.boot)
        state = deps.states.machines([trace.machine]).get(trace.machine)
        current = state is not None and state.current is not None and state.current.boot == trace.boot
        conditions = deps.conditions.conditions([trace.machine]).get(trace.machine, ()) if current else ()
    except CannotTellError:
        return {"in_service_ms": None, "now": None}
    return {"in_service_ms": in_service_ms, "now": _now(conditions)}


def _now(conditions: tuple[MachineCondition, ...]) -> dict[str, Any] | None:
    return next((each.document() for each in conditions if each.type is ConditionType.IN_SERVICE), None)
