"""Who is slow with whom: robust outliers by median and MAD, first of hosts, then of pairs.

A host that is slow makes all its pairs slow, so hosts are judged first, by the median of what they sent and of what
they received, each for itself, the slowest first; pairs of a host that was found are not held against its partners.
Source of the score and its limit: B. Iglewicz and D. C. Hoaglin, "How to Detect and Handle Outliers" (1993):
|0.6745 (x - median) / MAD| > 3.5. A difference that does not matter is none, however regular the rest: less than a
tenth below the median is never slow.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

LIMIT = 3.5
SCALE = 0.6745
"""0.6745 MAD are a standard deviation, of normal values."""
LEAST_SHORTFALL = 0.1
"""Of the median. Ours: what a fabric in order differs by between near and far pairs."""
FEWEST = 4
"""Hosts, or pairs, below which nobody can be told from the others."""
FEWEST_EACH = 3
"""Numbers of one host, of which the median is its own and not one partner's."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """From `source` to `target`: Gbit/s, or why there is no number."""

    source: str
    target: str
    gbps: float | None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Spread:
    """Of several numbers: their median, the median of how far each is from it, and what is slow among them."""

    median: float
    mad: float

    @property
    def least(self) -> float:
        """Less is slow."""
        return self.median - max(LIMIT * self.mad / SCALE, LEAST_SHORTFALL * self.median)


@dataclass(frozen=True, slots=True)
class SlowHost:
    """A host that sends, or receives, less than others do. `usual`: their median."""

    host: str
    way: str
    gbps: float
    usual: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What all measurements say together."""

    spread: Spread | None
    """Of all; None: nothing was measured."""
    hosts: tuple[SlowHost, ...]
    pairs: tuple[Measurement, ...]
    """Slow ones between hosts that are not."""
    unmeasured: tuple[Measurement, ...]
    judged: bool
    """There was a floor, or enough hosts with enough numbers for one that is slow to be told from the others."""
    sends: Mapping[str, float]
    receives: Mapping[str, float]
    """The median of each host."""


def spread(numbers: Iterable[float]) -> Spread | None:
    """None: there are none."""
    known = list(numbers)
    if not known:
        return None
    middle = median(known)
    return Spread(middle, median(abs(number - middle) for number in known))


def judge(measurements: Sequence[Measurement], floor: float | None = None) -> Verdict:
    """`floor`: Gbit/s below which a host or a pair is slow, whatever the others have; None: by the others alone."""
    measured = [one for one in measurements if one.gbps is not None]
    slow, others = _slow_hosts(measured, floor)
    least = _least(spread(one.gbps or 0.0 for one in others), len(others), floor)
    return Verdict(
        spread(one.gbps or 0.0 for one in measured),
        slow,
        tuple(sorted((one for one in others if (one.gbps or 0.0) < least), key=lambda one: one.gbps or 0.0)),
        tuple(one for one in measurements if one.gbps is None),
        bool(measured) if floor is not None else all(map(_enough, _by_way(measured).values())),
        *({host: median(found) for host, found in numbers.items()} for numbers in _by_way(measured).values()),
    )


def _slow_hosts(
    measured: Sequence[Measurement], floor: float | None
) -> tuple[tuple[SlowHost, ...], Sequence[Measurement]]:
    """The slowest first; then without what it sent, or received, who is slow among the rest. And what is left."""
    found: list[SlowHost] = []
    while candidates := [one for way, numbers in _by_way(measured).items() for one in _slow(way, numbers, floor)]:
        worst = min(candidates, key=lambda one: (one.gbps / one.usual, one.host))
        found.append(worst)
        measured = [one for one in measured if worst.host != (one.source if worst.way == "sends" else one.target)]
    return tuple(found), measured


def _by_way(measured: Sequence[Measurement]) -> dict[str, dict[str, list[float]]]:
    """What each host sent, and what each received."""
    return {
        "sends": _of_hosts((one.source, one.gbps) for one in measured),
        "receives": _of_hosts((one.target, one.gbps) for one in measured),
    }


def _of_hosts(numbers: Iterable[tuple[str, float | None]]) -> dict[str, list[float]]:
    by_host: dict[str, list[float]] = {}
    for host, number in numbers:
        by_host.setdefault(host, []).append(number or 0.0)
    return dict(sorted(by_host.items()))


def _enough(of_host: Mapping[str, Sequence[float]]) -> bool:
    return sum(len(numbers) >= FEWEST_EACH for numbers in of_host.values()) >= FEWEST


def _slow(way: str, of_host: Mapping[str, Sequence[float]], floor: float | None) -> list[SlowHost]:
    known = {host: median(found) for host, found in of_host.items() if len(found) >= FEWEST_EACH}
    found = spread(known.values())
    least = _least(found, len(known), floor)
    usual = found.median if found else 0.0
    return [SlowHost(host, way, gbps, usual) for host, gbps in known.items() if gbps < least]


def _least(found: Spread | None, count: int, floor: float | None) -> float:
    by_others = found.least if found is not None and count >= FEWEST else 0.0
    return max(by_others, floor or 0.0)
