"""What a check is, and what it finds."""

from collections.abc import Callable
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
class Check:
    """One check: `look` may take `seconds`, may hang and may be wrong; the runner sees to all three."""

    name: str
    severity: Severity
    seconds: float
    look: Callable[[Machine], Result]


def counted(number: int, one: str, many: str = "") -> str:
    """`1 GPU`, `8 GPUs`, `no GPUs`."""
    if number == 1:
        return f"1 {one}"
    return f"{number or 'no'} {many or one + 's'}"


def listed(words: list[str], most: int = 8) -> str:
    """Comma-separated, and how many more there are."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
