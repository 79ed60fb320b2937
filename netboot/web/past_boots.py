"""`/v1/machines/<name>/explain?boot=`: what was decided for a boot that there was, from what was written down then."""

from netboot.lifecycle.boot_facts import Script
from netboot.lifecycle.conditions import MachineCondition
from netboot.lifecycle.decided import Decided
from netboot.lifecycle.errors import CannotTellError, NoSuchBootError, unheard_of
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType
from netboot.lifecycle.trace import Trace
from netboot.web import render
from netboot.web.binding import Shown
from netboot.web.dependencies import Dependencies
from netboot.web.shapes import ConditionShown

_NOT_KEPT = (
    "what was decided from has changed between its script and the moment at which it proved itself, or it is longer "
    "ago than is kept"
)


class FactShown(Shown):
    """A phase that was reached: when, and what was said of it."""

    at_ms: int
    detail: str
    peer: str


class GateShown(Shown):
    """When the boot was first in service; and how the gate is now, where it is its machine's current one."""

    in_service_ms: int | None
    now: ConditionShown | None


class PastExplained(Shown):
    """What was decided for a boot. `decided`: null where `decided_problem` says why."""

    boot: str
    machine: str
    standing: str
    script: Script | None
    decided: Decided | None
    decided_problem: str | None
    attested: FactShown | None
    token: FactShown | None
    approval: FactShown | None
    gate: GateShown


def explained(deps: Dependencies, name: str, boot: str) -> PastExplained:
    """Script, image, what assigned it, token, approval, gate.

    Raises:
        NoSuchBootError: it was never heard of, is longer ago than is kept, or is another machine's.
    """
    trace = deps.states.boot(boot)
    if trace is None:
        raise unheard_of(boot)
    if trace.machine != name:
        raise NoSuchBootError(f"no such boot of {name}: it is one of {trace.machine}")
    decided, why_not = _decided(deps, trace)
    return PastExplained(
        boot=boot,
        machine=name,
        standing=render.trace(trace).standing,
        script=trace.script,
        decided=decided,
        decided_problem=why_not,
        attested=_fact(trace, Phase.ATTESTED),
        token=_fact(trace, Phase.TOKEN_ISSUED),
        approval=_fact(trace, Phase.CSR_APPROVED),
        gate=_gate(deps, trace),
    )


def _decided(deps: Dependencies, trace: Trace) -> tuple[Decided | None, str | None]:
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
    return (decided, None) if decided is not None else (None, _NOT_KEPT)


def _proven(trace: Trace) -> bool:
    return trace.last_observed is not None


def _fact(trace: Trace, phase: Phase) -> FactShown | None:
    reached = trace.phase(phase)
    return render.grown(FactShown, reached) if reached is not None else None


def _gate(deps: Dependencies, trace: Trace) -> GateShown:
    """When it was first in service; and how the gate is now, where it is the machine's current boot."""
    try:
        in_service_ms = deps.history.in_service([trace.boot]).get(trace.boot)
        state = deps.states.machines([trace.machine]).get(trace.machine)
        current = state is not None and state.current is not None and state.current.boot == trace.boot
        conditions = deps.conditions.conditions([trace.machine]).get(trace.machine, ()) if current else ()
    except CannotTellError:
        return GateShown(in_service_ms=None, now=None)
    return GateShown(in_service_ms=in_service_ms, now=_now(conditions))


def _now(conditions: tuple[MachineCondition, ...]) -> ConditionShown | None:
    return next((render.condition(each) for each in conditions if each.type is ConditionType.IN_SERVICE), None)
