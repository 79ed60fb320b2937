"""What a check is, and what it finds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .machine import Machine

Status = Literal["pass", "warn", "fail", "unknown", "absent"]
"""`pass`: as it should be. `warn`: works, and somebody should look. `fail`: not as it should be. `unknown`: cannot be
told. `absent`: there is none, and none is expected."""
Severity = Literal["critical", "major", "minor"]
"""What a `fail` means: nothing should run here; it runs slowly or partly; nobody's work suffers yet."""
STATUSES: tuple[Status, ...] = ("pass", "warn", "fail", "unknown", "absent")


@dataclass(frozen=True, slots=True)
class Result:
    """What one check found. `summary`: what there is, or precisely what is missing; `remedy`: what to do about it."""

    status: Status
    summary: str
    remedy: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    """Measured: numbers, words, and lists of them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not in order, of one GPU, link or port."""

    status: Literal["fail", "unknown", "warn"]
    text: str
    remedy: str = ""


def judged(findings: Sequence[Finding], well: Result) -> Result:
    """The findings of the worst status together, with the facts of `well`; `well` itself where there are none."""
    for status in ("fail", "unknown", "warn"):
        if worst := [finding for finding in findings if finding.status == status]:
            return Result(status, listed([finding.text for finding in worst]), worst[0].remedy, well.facts)
    return well


@dataclass(frozen=True, slots=True)
class Check:
    """One check: `look` may take `seconds`, may hang and may be wrong; the runner sees to all three."""

    name: str
    severity: Severity
    seconds: float
    look: Callable[[Machine], Result]


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 GPU`, `8 GPUs`, `no GPUs`."""
    if number == 1:
        return f"1 {singular}"
    return f"{number or 'no'} {plural or singular + 's'}"


def listed(items: list[str], most: int = 8) -> str:
    """Comma-separated, and how many more there are. As `images.values.faults.first_few`, which no machine has."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more
