"""What checks remember within a boot, in /run/netboot/health: which counters grew, what the kernel once said.

Counters are judged by how much they grew, never by what they are: hardware keeps them over boots and nobody clears
them. What the kernel said is kept because its ring forgets: a GPU that fell off the bus is no better an hour later.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from ..agent.files import small
from ..agent.settings import RUN
from .machine import Machine
from .result import Finding
from .thresholds import THRESHOLDS

FOLDER = RUN / "health"
LONGEST = 1024 * 1024
WINDOW_SECONDS = 3600.0
"""Growth is counted over the last hour, or since the first run where that is less."""
MOST_EACH = 4
"""Lines of one kind that are kept: the latest."""


def grown(machine: Machine, check: str, counters: dict[str, int], *, resets: bool = True) -> dict[str, int]:
    """By how much each counter grew within the window; what did not grow is left out. The first run of a boot finds
    nothing. A counter that is less than before was cleared and began again at 0; or, without `resets`, lost what is
    old, like a log that is full."""
    kept = _load(machine, check)
    now = machine.uptime()
    before = kept.get("counters") if isinstance(kept.get("counters"), dict) else None
    steps = [step for step in kept.get("steps", []) if now - step[0] < WINDOW_SECONDS]
    if before is not None:
        step = {
            name: count - before[name] if before[name] <= count else count * resets
            for name, count in counters.items()
            if name in before
        }
        if any(step.values()):
            steps.append([now, {name: count for name, count in step.items() if count}])
    # one that cannot be read this time is compared with what it was before, when it can again
    _save(machine, check, {"counters": {**(before or {}), **counters}, "steps": steps})
    total: dict[str, int] = {}
    for _, step in steps:
        for name, count in step.items():
            total[name] = total.get(name, 0) + count
    return total


def outgrown(
    machine: Machine, check: str, counters: dict[tuple[str, str], int], remedy: str, *, failing: Sequence[str] = ()
) -> list[Finding]:
    """A finding for each counter that grew by more than its threshold. `counters`: (where, threshold) -> count;
    `failing`: the thresholds beyond which it fails; beyond the others it warns."""
    growth = grown(machine, check, {f"{where} {limit}": count for (where, limit), count in counters.items()})
    findings = []
    for (where, limit), count in ((key, growth.get(f"{key[0]} {key[1]}", 0)) for key in counters):
        if count > machine.expected.threshold(limit):
            most = machine.expected.threshold(limit)
            text = f"{where}: {count} {THRESHOLDS[limit].what} in the last hour, {most:g} are tolerated"
            findings.append(Finding("fail" if limit in failing else "warn", text, remedy))
    return findings


def heard(machine: Machine, check: str, key: Callable[[str], str | None]) -> list[str]:
    """Lines of the kernel log of this boot that have a key, those too that its ring has lost; of each key the latest.

    Raises:
        CannotTellError: the kernel log cannot be read.
    """
    kept = _load(machine, check)
    by_key: dict[str, list[str]] = {name: lines for name, lines in kept.items() if isinstance(lines, list)}
    for line in machine.kernel_log().splitlines():
        if (name := key(line)) is not None:
            lines = by_key.setdefault(name, [])
            if line[:500] not in lines:
                lines.append(line[:500])
            del lines[:-MOST_EACH]
    if by_key:
        _save(machine, check, by_key)
    return sorted((line for lines in by_key.values() for line in lines), key=_sequence)


def lasting(machine: Machine, check: str, *, holds: bool) -> float:
    """For how many seconds something has been so without a break, by the runs of this boot; 0 where it is not, and in
    the run that sees it first."""
    now = machine.uptime()
    since = _load(machine, check).get("since") if holds else None
    if not isinstance(since, (int, float)) or since > now:
        since = now
    _save(machine, check, {"since": since} if holds else {})
    return now - since


def _sequence(line: str) -> int:
    """The record's number: `6,1200,5100000,-;text`."""
    number = line.partition(",")[2].partition(",")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0


def _load(machine: Machine, check: str) -> dict[str, Any]:
    """What was kept; nothing, where there is nothing or it is torn."""
    try:
        value = json.loads(small(machine.root / FOLDER / f"{check}.json", LONGEST) or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _save(machine: Machine, check: str, value: dict[str, Any]) -> None:
    machine.keep(FOLDER / f"{check}.json", json.dumps(value).encode())
