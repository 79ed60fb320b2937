"""Medians, and whether a figure reaches its target."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median


def middle(values: Iterable[float]) -> float:
    """The median.

    Raises:
        ValueError: no values.
    """
    numbers = list(values)
    if not numbers:
        raise ValueError("no median of nothing")
    return float(median(numbers))


def paired(ours: Iterable[float], theirs: Iterable[float]) -> float:
    """Ours as a multiple of theirs: the median of the rounds' own ratios, for what else the machine does in a round is
    in both of its figures.

    Raises:
        ValueError: no rounds, or one side has more of them.
    """
    return middle(one / other for one, other in zip(ours, theirs, strict=True))


@dataclass(frozen=True)
class Verdict:
    """A measured figure beside its target."""

    what: str
    value: float
    target: float
    at_least: bool = True
    """Otherwise at most."""

    @property
    def reached(self) -> bool:
        """Whether the target is reached."""
        return self.value >= self.target if self.at_least else self.value <= self.target

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{self.what}: {self.value:.3g} (target {sign} {self.target:g}) {'pass' if self.reached else 'MISS'}"
