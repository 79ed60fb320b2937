"""Which machines are not well, by facts that may be acted on (rule L3): a Node of the proven boot that is not Ready, a
proven boot whose deadline is past, and what a node says of itself under its boot's own certificate. No report and no
claim makes one, and none hides one. Pure.
"""

from collections.abc import Callable
from typing import NamedTuple

from netboot.lifecycle import sentences
from netboot.lifecycle.conditions import Ailment, Judged
from netboot.lifecycle.known import UP, Declared, Known, Node
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.transitions import Mark
from netboot.machines.deadlines import Deadline

Past = Callable[[str, str, str, Deadline], bool]
"""Whether what a timer (name, of what, place) counts has been so for as long as the deadline."""


class Ailing(NamedTuple):
    """A machine that is not well now. `ready`: its Node is Ready; `holder`: who else has taken that, in words."""

    ailment: Ailment
    declared: Declared
    ready: bool
    holder: str


def ailment_of(known: Known, before: Judged | None, past: Past, now_ms: int, *, lost: bool) -> Ailment | None:
    """What is wrong, and since when. `lost`: the Node of its proven boot has not been Ready for the deadline `Lost`."""
    boot = known.state.current
    if boot is None or boot.last_observed is None:
        return None  # nothing is proven
    if not (known.declared.joins and known.declared.enabled) or Mark.RETIRED in known.marks:
        return None  # nothing is awaited
    found = _found(known, boot, past, lost=lost)
    if found is None:
        return None
    reason, message = found
    was = before.ailment if before is not None else None
    same = was is not None and (was.reason, was.boot) == (reason, boot.boot)
    since = was.since_ms if same and was is not None else now_ms
    return Ailment(reason=reason, boot=boot.boot, since_ms=since, message=message)


def _found(known: Known, boot: Trace, past: Past, *, lost: bool) -> tuple[Reason, str] | None:
    deadlines = known.declared.deadlines
    if known.node in UP:
        failed = known.word.failed == boot.boot
        return (Reason.CHECKS_FAILED, sentences.checks_failed(boot)) if failed else None
    if boot.phase(Phase.READY) is not None:
        limit = deadlines["Lost"]
        silent = lost and known.node is Node.NOT_READY
        return (Reason.NODE_NOT_READY, sentences.not_ready(boot, limit)) if silent else None
    step = boot.last_observed
    assert step is not None  # asked before
    limit = deadlines[str(step)]
    late = past("proven", f"{boot.boot} {step}", known.declared.places.cluster, limit)
    return (Reason.STUCK, sentences.overdue(boot, step, limit)) if late else None
