"""What the object of a machine says of its health: of the latest report as much as judging needs. Pure."""

from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError

from images.values.strict import Strict
from netboot.lifecycle.events import HealthRecord, Moment
from netboot.lifecycle.health import WORST, CheckResult
from netboot.lifecycle.object_boots import Digits

MOST_CHECKS = 6
"""The worst: so the worst of them is the worst of all."""
MOST_SUMMARY = 60
_GRAVE = ("critical", "major", "minor")
REFRESH_MS = 600_000
"""What says the same is told again after so long: before it is stale for anybody, and not with each report."""

_Word = Annotated[str, StringConstraints(max_length=64)]


class CheckTold(Strict):
    """One check."""

    name: _Word
    """Which it is, as docs/health.md has them."""
    status: _Word
    """How it turned out: pass, warn, fail, unknown or absent."""
    severity: _Word
    """How grave it is that it fails: critical, major or minor."""
    summary: Annotated[str, StringConstraints(max_length=MOST_SUMMARY)] = ""
    """How what it found begins, where it did not pass."""


class HealthTold(Strict):
    """What the machine reported of its hardware last, which is a claim of the machine."""

    boot: _Word = ""
    """Id of the boot that reported it."""
    at: Moment = 0
    """When it came, in milliseconds since 1970, by the clock of the replica that was told."""
    arrived: Digits = ""
    """Which of two reports is the later one, whatever clocks say: the one with the greater number."""
    checks: Annotated[tuple[CheckTold, ...], Field(max_length=MOST_CHECKS)] = ()
    """Its worst checks; all are known where it was told."""


def health_told(record: HealthRecord, arrived: int) -> HealthTold:
    """What is told of a report. `arrived`: its number, as facts are numbered."""
    checks = sorted(record.report.checks, key=lambda check: (_place(check), _GRAVE.index(check.severity), check.name))
    return HealthTold(
        boot=record.boot,
        at=record.at_ms,
        arrived=str(arrived),
        checks=tuple(
            CheckTold(
                name=each.name,
                status=each.status,
                severity=each.severity,
                summary=each.summary[:MOST_SUMMARY] if each.status not in ("pass", "absent") else "",
            )
            for each in checks[:MOST_CHECKS]
        ),
    )


def _place(check: CheckResult) -> int:
    return WORST.index(check.status) if check.status != "absent" else len(WORST)


def health_of(told: HealthTold, machine: str) -> HealthRecord | None:
    """What an object says of a boot's health, as a record; None: nothing, or it is not what we write."""
    report = {"schema": 1, "taken_ms": told.at, "checks": [each.model_dump() for each in told.checks]}
    try:
        return HealthRecord.model_validate(
            {"at_ms": told.at, "boot": told.boot, "machine": machine, "peer": "", "report": report}
        )
    except ValidationError:
        return None


def later(said: HealthTold, mine: HealthTold, boot: str) -> HealthTold:
    """Of what an object says and what is known here, what it is to say of this boot: the later one, unless it says the
    same and the one before is not old."""
    if boot not in (said.boot, mine.boot) or not boot:
        return HealthTold()
    if said.boot != mine.boot:
        return said if said.boot == boot else mine
    newer = int(mine.arrived or 0) > int(said.arrived or 0)
    same = said.checks == mine.checks and abs(mine.at - said.at) < REFRESH_MS  # of two clocks
    return mine if newer and not same else said
