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
