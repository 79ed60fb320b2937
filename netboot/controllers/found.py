"""What was found of all machines, counted, so that nobody who asks how many reads each; and what is said of it."""

import logging
from collections import Counter

from netboot.lifecycle.budget import fills_a_place
from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.summary import LONG_GATED_MS
from netboot.lifecycle.transitions import Trouble

log = logging.getLogger(__name__)

TROUBLES = frozenset(
    {Reason.STUCK, Reason.BOOT_LOOP, Reason.FAILED, Reason.LOST, Reason.CHECKS_FAILED, Reason.NODE_NOT_READY}
)
"""Reasons that the log says when they come and when they go; a fleet that boots would fill it with the others."""

_UNHEALTHY = frozenset({Reason.CHECKS_FAILED, Reason.REPORT_STALE})

_Counted = tuple[tuple[str, str], ...]


class Found:
    """By condition and reason; boots that are past a deadline by their furthest phase."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[_Counted, str]] = {}
        self._conditions: Counter[tuple[str, str]] = Counter()
        self._overdue: Counter[str] = Counter()
        self._gated: dict[str, int] = {}
        """Machines that the gate keeps from work, and since when they have not been in service, over reboots, too."""
        self._unhealthy: set[str] = set()
        self.out: set[str] = set()
        """Machines that are out of service and fill a place of a budget."""
        self._shared: dict[_Counted, _Counted] = {}
        """So that 50,000 machines of which the same is true share it."""

    def put(self, judged: Judged) -> None:
        """Of this machine, in the place of what was found before."""
        self.drop(judged.machine)
        counted: _Counted = tuple((condition.type.value, condition.reason.value) for condition in judged.conditions)
        counted = self._shared.setdefault(counted, counted)
        overdue = judged.step if judged.trouble is Trouble.STUCK else ""
        self._of[judged.machine] = (counted, overdue)
        self._conditions.update(counted)
        self._overdue[overdue] += 1
        in_service = judged.condition(ConditionType.IN_SERVICE)
        if in_service is not None and in_service.reason is Reason.HEALTH_GATED:
            self._gated[judged.machine] = in_service.since_ms
        if _is_unhealthy(judged):
            self._unhealthy.add(judged.machine)
        if fills_a_place(judged):
            self.out.add(judged.machine)

    def drop(self, machine: str) -> None:
        """There is no such machine any more."""
        counted, overdue = self._of.pop(machine, ((), ""))
        self._conditions.subtract(counted)
        self._overdue[overdue] -= 1
        self._gated.pop(machine, None)
        self._unhealthy.discard(machine)
        self.out.discard(machine)

    def conditions(self) -> tuple[tuple[str, str, int], ...]:
        """Condition, reason, and how many machines."""
        return tuple((kind, reason, count) for (kind, reason), count in sorted(self._conditions.items()) if count)

    def overdue(self) -> dict[str, int]:
        """Phase, and how many boots are past the deadline for what comes after it."""
        return {step: count for step, count in sorted(self._overdue.items()) if step and count > 0}

    def long_gated(self, now_ms: int) -> int:
        """Machines that the gate keeps from work and that have not been in service for `LONG_GATED_MS`."""
        return sum(now_ms - since_ms >= LONG_GATED_MS for since_ms in self._gated.values())

    @property
    def unhealthy(self) -> int:
        """Machines that are up, are not retired, and whose checks fail or are heard of no more."""
        return len(self._unhealthy)


def _is_unhealthy(judged: Judged) -> bool:
    booted, healthy = judged.condition(ConditionType.BOOTED), judged.condition(ConditionType.HEALTHY)
    in_service = judged.condition(ConditionType.IN_SERVICE)
    up = booted is not None and booted.status == "True"
    retired = in_service is not None and in_service.reason is Reason.RETIRED
    return up and not retired and healthy is not None and healthy.reason in _UNHEALTHY


def tell(before: Judged | None, now: Judged) -> None:
    """Say in the log what went wrong with a machine, and what is in order again; the same sentence once."""
    said = set[str]()
    for condition in now.conditions:
        old = before.condition(condition.type) if before is not None else None
        if old is not None and (old.status, old.reason) == (condition.status, condition.reason):
            continue
        reasons = {condition.reason, *([old.reason] if old is not None else [])}
        if not reasons & TROUBLES or condition.message in said:
            continue
        said.add(condition.message)
        level = logging.WARNING if condition.reason in TROUBLES else logging.INFO
        words = (condition.type, condition.status, condition.reason)
        fields = {"machine": now.machine, **dict(zip(("condition", "status", "reason"), words, strict=True))}
        log.log(level, "%s: %s is %s (%s): %s", now.machine, *words, condition.message, extra={"fields": fields})
