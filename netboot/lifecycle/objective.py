"""How long boots take until machines work: durations as Prometheus counts them, each boot once. Pure."""

from bisect import bisect_left
from typing import Literal, NamedTuple

from images.values.strict import Strict
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.spans import IN_SERVICE, spans, took
from netboot.lifecycle.trace import Trace

BUCKETS = (15, 20, 25, 30, 40, 50, 60, 75, 90, 120, 180, 300, 600, 900, 1_800, 3_600)
"""Upper bounds in seconds: fine where the objective is, coarse to an hour. Never changed: counts stand on them."""
MOST_SERIES = 64
"""Pairs of a class and an image that are counted; of a further one the pair goes that was counted longest ago."""
Target = Literal["Ready", "InService"]


class Measured(NamedTuple):
    """One boot's way to a target, from the start of its kernel. `hardware`: its machine's class; "": it has none."""

    target: Target
    hardware: str
    image: str
    ms: int
    unaccounted_ms: int


class Durations(Strict):
    """Of one target, class and image. `counts`: boots by bucket, each in the first that it fits, the last beyond all;
    the two sums in milliseconds."""

    target: Target
    hardware: str
    image: str
    counts: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)
    ms: int = 0
    unaccounted_ms: int = 0

    def plus(self, one: Measured) -> "Durations":
        """With one boot more."""
        bucket = bisect_left(BUCKETS, one.ms / 1000)
        counts = tuple(count + (number == bucket) for number, count in enumerate(self.counts))
        sums = {"ms": self.ms + one.ms, "unaccounted_ms": self.unaccounted_ms + one.unaccounted_ms}
        return self.model_copy(update={"counts": counts, **sums})

    def buckets(self) -> list[tuple[str, int]]:
        """Upper bound and how many boots were not above it, as Prometheus has a histogram."""
        found, total = [], 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
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
