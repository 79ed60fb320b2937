"""How long boots take until machines work: durations as Prometheus counts them, each boot once. Pure."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Literal, NamedTuple

from images.values.strict import Strict
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.spans import IN_SERVICE, KERNEL, STEPS, Span, spans, took
from netboot.lifecycle.trace import Trace

BUCKETS = (15, 20, 25, 30, 40, 50, 60, 75, 90, 120, 180, 300, 600, 900, 1_800, 3_600)
"""Upper bounds in seconds: fine where the objective is, coarse to an hour. Never changed: counts stand on them."""
PHASE_BUCKETS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 900)
"""Likewise of one phase, which takes no more than a part of that."""
MOST_SERIES = 64
"""Pairs of a class and an image that are counted; of a further one the pair goes that was counted longest ago."""
Target = Literal["Ready", "InService"]
_PHASE = "phase "
"""Before a phase's name, in the place of a target."""
FROM_KERNEL = STEPS[STEPS.index(KERNEL) :]


class Measured(NamedTuple):
    """One boot's way to a target, from the start of its kernel; or one phase of it, from reaching that to reaching the
    next. `hardware`: its machine's class; "": it has none."""

    target: str
    hardware: str
    image: str
    ms: int
    unaccounted_ms: int


class Durations(Strict):
    """Of one target or phase, class and image. `counts`: boots by bucket, each in the first that it fits, the last
    beyond all; empty: none yet; the two sums in milliseconds."""

    target: str
    hardware: str
    image: str
    counts: tuple[int, ...] = ()
    ms: int = 0
    unaccounted_ms: int = 0

    @property
    def phase(self) -> str | None:
        """That which it is of; None: it is of a target."""
        return self.target.removeprefix(_PHASE) if self.target.startswith(_PHASE) else None

    @property
    def _bounds(self) -> tuple[float, ...]:
        return BUCKETS if self.phase is None else PHASE_BUCKETS

    def plus(self, one: Measured) -> "Durations":
        """With one boot more."""
        bucket, before = bisect_left(self._bounds, one.ms / 1000), self.counts or (0,) * (len(self._bounds) + 1)
        counts = tuple(count + (number == bucket) for number, count in enumerate(before))
        sums = {"ms": self.ms + one.ms, "unaccounted_ms": self.unaccounted_ms + one.unaccounted_ms}
        return self.model_copy(update={"counts": counts, **sums})

    def buckets(self) -> list[tuple[str, int]]:
        """Upper bound and how many boots were not above it, as Prometheus has a histogram."""
        found, total = [], 0
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self.counts, strict=True):
            total += count
            found.append((bound, total))
        return found


def measured(trace: Trace, target: Target, hardware: str, in_service_ms: int | None) -> Measured | None:
    """How long that boot took; None: it is not there, or it cannot be told when its kernel started, or what it was
    served."""
    end = Phase.READY if target == "Ready" else IN_SERVICE
    found = took(spans(trace, in_service_ms), end)
    if found is None or trace.script is None:
        return None
    return Measured(target, hardware, trace.script.image[:12], found.ms, found.unaccounted_ms)


def together(measured: Iterable[Measured]) -> dict[tuple[str, str, str], list[Measured]]:
    """By target or phase, class and image."""
    found: dict[tuple[str, str, str], list[Measured]] = {}
    for one in measured:
        found.setdefault((one.target, one.hardware, one.image), []).append(one)
    return found


def measured_phases(trace: Trace, hardware: str, in_service_ms: int | None = None) -> list[Measured]:
    """How long each phase of that boot took from the start of its kernel, where the next one was heard of too: of
    others nobody can say which took how long. `in_service_ms`: the last phase alone, from Ready to that."""
    if trace.script is None:
        return []
    image = trace.script.image[:12]
    parts = [part for part in spans(trace, in_service_ms) if _is_phase(part, in_service_ms)]
    return [Measured(_PHASE + part.step, hardware, image, part.end_ms - part.begin_ms, 0) for part in parts]


def _is_phase(part: Span, in_service_ms: int | None) -> bool:
    return not part.missing and part.step in FROM_KERNEL and (part.until == IN_SERVICE) is (in_service_ms is not None)
