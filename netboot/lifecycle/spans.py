"""Where the time of a boot went: from one phase to the next, and what no phase accounts for. Pure.

Two phases that follow each other account for the time between them. Where one between them was never heard of, nobody
can say which of them took how long. What a machine reports is placed by its own uptime, so that a report that came late
makes no phase longer; moments that contradict each other are put in the order of the phases.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.phases import SERVED_PHASES, Phase, Source
from netboot.lifecycle.reached import ORDER, Reached
from netboot.lifecycle.summary import MachineStatus, summary_of
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.transitions import Trouble
from netboot.machines.deadlines import Deadline

KERNEL = "Kernel"
"""The start of the kernel, between what firmware fetches and what the initrd reports."""
IN_SERVICE = "InService"
STEPS: tuple[str, ...] = (
    *(str(phase) for phase in ORDER if phase in SERVED_PHASES),
    KERNEL,
    *(str(phase) for phase in ORDER if phase not in SERVED_PHASES),
    IN_SERVICE,
)
"""In the order in which a boot goes through them; what happens at each: docs/lifecycle.md#deadlines."""


class Span(NamedTuple):
    """A part of a boot: from reaching `step` to reaching `until`, milliseconds since 1970. `missing`: steps between the
    two that were never heard of; then no phase accounts for it."""

    step: str
    until: str
    begin_ms: int
    end_ms: int
    missing: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end_ms - self.begin_ms) / 1000


class Took(NamedTuple):
    """From the start of the kernel to a step, in milliseconds; `unaccounted_ms`: what no phase accounts for of it."""

    ms: int
    unaccounted_ms: int


def spans(trace: Trace, in_service_ms: int | None = None) -> tuple[Span, ...]:
    """The parts of a boot, in order. `in_service_ms`: when it was first seen to be in service; None: it was not.

    The start of the kernel is no step of a boot that never said its uptime.
    """
    moments = _moments(trace, in_service_ms)
    steps = [step for step in STEPS if step != KERNEL or KERNEL in moments]
    known = [step for step in steps if step in moments]
    found, at = [], moments[known[0]] if known else 0
    for step, until in pairwise(known):
        end = max(at, moments[until])
        missing = tuple(steps[steps.index(step) + 1 : steps.index(until)])
        found.append(Span(step, until, at, end, missing))
        at = end
    return tuple(found)


class GoesOn(NamedTuple):
    """The part of a boot that has no end yet: from when on, and at which step it is. `deadline_ms`: when it is late
    unless its clock stood still meanwhile (docs/lifecycle.md#deadlines), None: never; `late`: it is."""

    step: str
    begin_ms: int
    deadline_ms: int | None
    late: bool


def goes_on(
    trace: Trace, judged: Judged | None, deadlines: Mapping[str, Deadline], in_service_ms: int | None = None
) -> GoesOn | None:
    """What it is in now. None: it came to its end, or is not the boot that counts. `judged`: of its machine."""
    moments = _moments(trace, in_service_ms)
    if judged is None or judged.boot != trace.boot or not moments or in_service_ms is not None:
        return None
    over = summary_of(judged).status in (MachineStatus.OFF, MachineStatus.IN_SERVICE)
    if over or judged.step == IN_SERVICE or judged.trouble is Trouble.LOST:
        return None
    begin, deadline = max(moments.values()), deadlines.get(judged.step)
    due = begin + deadline.seconds * 1000 if deadline is not None and deadline.seconds else None
    waits = judged.trouble is not Trouble.FAILED
    return GoesOn(judged.step, begin, due if waits else None, judged.trouble is Trouble.STUCK)


def took(parts: tuple[Span, ...], until: Phase | str) -> Took | None:
    """How long it took from the start of the kernel to that step; None: either is not known."""
    steps = [part.step for part in parts]
    ends = [number for number, part in enumerate(parts) if part.until == str(until)]
    if KERNEL not in steps or not ends:
        return None
    counted = parts[steps.index(KERNEL) : ends[0] + 1]
    if not counted:
        return None
    unaccounted = sum(part.end_ms - part.begin_ms for part in counted if part.missing)
    return Took(counted[-1].end_ms - counted[0].begin_ms, unaccounted)


def _moments(trace: Trace, in_service_ms: int | None) -> dict[str, int]:
    kernel = trace.kernel_ms
    moments = {str(reached.phase): _moment(reached, kernel) for reached in trace.reached}
    if kernel is not None:
        moments[KERNEL] = kernel
    if in_service_ms is not None:
        moments[IN_SERVICE] = in_service_ms
    return moments


def _moment(reached: Reached, kernel_ms: int | None) -> int:
    if kernel_ms is None or reached.uptime_ms is None or reached.source is not Source.REPORTED:
        return reached.at_ms
    return min(reached.at_ms, kernel_ms + reached.uptime_ms)
