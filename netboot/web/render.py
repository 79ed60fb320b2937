"""Values of the service as the API shows them."""

from collections.abc import Mapping
from typing import TypeVar

from flask import Response
from pydantic import BaseModel

from netboot.clock import rfc3339
from netboot.lifecycle.conditions import MachineCondition
from netboot.lifecycle.crashes import Crashed
from netboot.lifecycle.events import ConsoleRecord
from netboot.lifecycle.state import is_claim, standing
from netboot.lifecycle.trace import Trace
from netboot.web.shapes import ConditionShown, ConsoleShown, CrashShown, TraceShown

M = TypeVar("M", bound=BaseModel)


def grown(kind: type[M], value: BaseModel, **more: object) -> M:
    """What the value says, in a model that says more of it. Both were checked when they were made, or are ours."""
    fields = {name: getattr(value, name) for name in type(value).model_fields if name in kind.model_fields}
    return kind.model_construct(**(fields | more))


def trace(value: Trace) -> TraceShown:
    """A trace with what follows from it."""
    return grown(
        TraceShown,
        value,
        found_crashes=len(value.crashes),
        console_ms=value.console.at_ms if value.console is not None else None,
        claim=is_claim(value),
        standing=standing(value).name.lower(),
        state=value.state,
        reason=value.reason,
        started_ms=value.started_ms,
        last_ms=value.last_ms,
        last_served=value.last_served,
        last_reported=value.last_reported,
        last_observed=value.last_observed,
        kernel_ms=value.kernel_ms,
        seconds_to_ready=value.seconds_to_ready,
    )


def condition(value: MachineCondition) -> ConditionShown:
    """One, as Kubernetes has them."""
    return grown(ConditionShown, value, lastTransitionTime=rfc3339(value.since_ms))


def conditions(
    known: Mapping[str, tuple[MachineCondition, ...]] | None, name: str
) -> tuple[ConditionShown, ...] | None:
    """A machine's; none: it was not judged yet; None: it cannot be told."""
    return tuple(map(condition, known.get(name, ()))) if known is not None else None


def crashed(value: Crashed, text: str | None) -> CrashShown:
    """A crash, whose it was and who found it. `text`: None: it cannot be read (any more)."""
    return grown(CrashShown, value.crash, text=text, boot=value.boot, found_by=value.found_by)


def console(value: Trace, kept: ConsoleRecord | None) -> ConsoleShown | None:
    """The last lines of its console that a boot sent; of those whose text is not kept, that there were some. None: it
    sent none."""
    known = kept or value.console
    return grown(ConsoleShown, known, text=kept.text if kept is not None else None) if known is not None else None


def maybe_trace(value: Trace | None) -> TraceShown | None:
    """The same of what may not be there."""
    return trace(value) if value is not None else None


def uncached(response: Response) -> Response:
    """What is true now is not to be kept by anybody."""
    response.headers["Cache-Control"] = "no-store"
    return response
