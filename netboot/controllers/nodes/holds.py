"""What is on machines that keeps them from work, as the lifecycle's loop found it: from `data/conditions.db`."""

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from netboot.controllers.changes import Changes
from netboot.controllers.nodes.gate import HOLDS
from netboot.lifecycle.conditions import Conditions
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.reasons import ConditionType

LOOK_SECONDS = 5.0
"""How often the file is looked at; it changes with every machine's conditions."""


class JudgedHolds:
    """`path`: of the file that `conditions` reads; `machines()`: names of those that are asked for."""

    def __init__(
        self,
        path: Path,
        conditions: Conditions,
        machines: Callable[[], Collection[str]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._changes = Changes(lambda: (path, path.with_name(f"{path.name}-wal")), by_content=False)
        self._conditions, self._machines, self._monotonic = conditions, machines, monotonic
        self._looked, self._unread = float("-inf"), False
        self._holds: Mapping[str, str] | None = None

    def holds(self) -> Mapping[str, str] | None:
        """Machine → Held, Quarantined or Retired; "": none of them; one that is not in it is not judged yet. None: it
        cannot be told yet. Where the file cannot be read, what it said before counts."""
        if self._monotonic() - self._looked < LOOK_SECONDS:
            return self._holds
        self._looked = self._monotonic()
        if self._changes.settled(now=True) or self._unread:
            self._unread = True
            try:
                found = self._conditions.conditions(list(self._machines()))
            except CannotTellError:
                return self._holds
            self._unread = False
            reasons = {
                machine: each.reason
                for machine, conditions in found.items()
                for each in conditions
                if each.type is ConditionType.IN_SERVICE
            }
            self._holds = {machine: reason if reason in HOLDS else "" for machine, reason in reasons.items()}
        return self._holds
