"""What is on machines that keeps them from work, as their condition `InService` says."""

from collections.abc import Callable, Mapping

from netboot.controllers.nodes.gate import HOLDS
from netboot.controllers.nodes.judged import Found
from netboot.lifecycle.reasons import ConditionType


class JudgedHolds:
    """`found()`: what was found of machines; None: it cannot be told."""

    def __init__(self, found: Callable[[], Found | None]) -> None:
        self._found = found
        self._of: Found | None = None
        self._holds: Mapping[str, str] | None = None

    def holds(self) -> Mapping[str, str] | None:
        """Machine → Held, Quarantined or Retired; "": none of them; one that is not in it is not judged yet. None: it
        cannot be told yet."""
        found = self._found()
        if found is not self._of and found is not None:
            reasons = {
                machine: each.reason.value
                for machine, conditions in found.items()
                for each in conditions
                if each.type is ConditionType.IN_SERVICE
            }
            self._of = found
            self._holds = {machine: reason if reason in HOLDS else "" for machine, reason in reasons.items()}
        return self._holds
