"""What the approver decided, counted for metrics."""

import threading
from collections import Counter

from netboot.controllers.approver.decision import APPROVED, MALFORMED, REASONS

_NONE = {("denied", reason): 0 for reason in (MALFORMED, *REASONS.values())} | {
    ("approved", each): 0 for each in APPROVED
}


class Counts:
    """By outcome, and reason or purpose. Each is there from the start, so that its first time is a rise. Safe for
    threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counter(_NONE)

    def add(self, outcome: str, what: str) -> None:
        """Once more."""
        with self._lock:
            self._counts[outcome, what] += 1

    def all(self) -> tuple[tuple[str, str, int], ...]:
        """Of each outcome, and reason or purpose, how many."""
        with self._lock:
            return tuple((outcome, what, count) for (outcome, what), count in sorted(self._counts.items()))
