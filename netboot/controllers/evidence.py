"""What is at hand of a machine's boot, written down with a remedy before that takes it away."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from netboot.lifecycle.conditions import Ailment, Judged, moment
from netboot.lifecycle.health import HealthReport
from netboot.lifecycle.ports import States
from netboot.lifecycle.trace import Trace

MOST_BYTES = 16 * 1024
MOST_FAILURES, MOST_CHECKS = 4, 16
"""The latest, and those that did not pass."""
LONGEST_LOG = 6 * 1024
"""Characters: the end of what a crash left."""


class Evidence:
    """`judged(names)`: what was found of machines."""

    def __init__(self, states: States, judged: Callable[[Sequence[str]], Mapping[str, Judged]]) -> None:
        self._states, self._judged = states, judged

    def of(self, machine: str, ailment: Ailment) -> str:
        """JSON, of MOST_BYTES at most: what is too long goes, the longest first.

        Raises:
            CannotTellError: it cannot be read now.
        """
        judged, trace = self._judged([machine]).get(machine), self._states.boot(ailment.boot)
        health, crashes = self._states.health(ailment.boot), self._states.crash_texts(ailment.boot)
        parts: dict[str, Any] = {
            "conditions": [each.document() for each in judged.conditions] if judged is not None else [],
            "boot": _boot(trace) if trace is not None else None,
            "health": _checks(health.report) if health is not None else None,
            "crash": next(iter(crashes.values()), "")[-LONGEST_LOG:],
        }
        while len(text := json.dumps(parts)) > MOST_BYTES:
            longest = max(parts, key=lambda name: len(json.dumps(parts[name])))
            parts[longest] = "too long to be kept"
        return text


def _boot(trace: Trace) -> dict[str, Any]:
    """How far it came, and what it said last that failed."""
    return {
        "image": trace.script.image if trace.script is not None else None,
        "phases": [f"{each.phase} {moment(each.at_ms)}" for each in trace.reached],
        "failures": [{"at": moment(each.at_ms), "detail": each.detail} for each in trace.failures[-MOST_FAILURES:]],
    }


def _checks(report: HealthReport) -> list[dict[str, Any]]:
    bad = [check for check in report.checks if check.status not in ("pass", "absent")]
    return [check.model_dump(mode="json", exclude={"ms", "facts"}) for check in bad[:MOST_CHECKS]]
