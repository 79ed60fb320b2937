"""What a machine reports of its hardware: a claim of the machine, like all that is reported. docs/health.md.

Nodes and services are not of one version: fields that are not known here are left out, an unknown `schema` is refused.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, FiniteFloat, StringConstraints

from images.values.strict import Strict
from images.values.types import Name
from netboot.machines.deadlines import DEFAULTS
from netboot.machines.values import Mac

CheckStatus = Literal["pass", "warn", "fail", "unknown", "absent"]
HealthStatus = Literal["pass", "warn", "fail", "unknown"]
"""Of a whole report: the worst of its checks; what is absent and not expected is in order."""
WORST: tuple[HealthStatus, ...] = ("fail", "unknown", "warn", "pass")
STALE_MS = DEFAULTS["ReportStale"] * 1000
"""Nodes report every five to six minutes: after three that are missing nothing can be told any more."""

Line = Annotated[str, StringConstraints(pattern=r"^[ -~]{0,300}$")]
FactName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Whole = Annotated[int, Field(gt=-(2**53), lt=2**53)]
Millis = Annotated[int, Field(ge=0, lt=2**53)]
Real = Annotated[FiniteFloat, Field(gt=-(2**53), lt=2**53)]
Word = bool | Whole | Real | Line | None
Fact = Word | Annotated[tuple[Word, ...], Field(max_length=64)]


class _Tolerant(Strict):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=False, hide_input_in_errors=True)


class CheckResult(_Tolerant):
    """What one check found."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    status: CheckStatus
    severity: Literal["critical", "major", "minor"]
    summary: Line = ""
    remedy: Line = ""
    ms: Millis = 0
    facts: Annotated[dict[FactName, Fact], Field(max_length=16)] = Field(default_factory=dict)


def _once(checks: tuple[CheckResult, ...]) -> tuple[CheckResult, ...]:
    if len({check.name for check in checks}) < len(checks):
        raise ValueError("a check is here twice")
    return checks


class HealthReport(_Tolerant):
    """The body that a machine posts to `/v1/boots/<id>/health`."""

    version: Literal[1] = Field(alias="schema")
    machine: Name | None = None
    """What the kernel command line called it."""
    mac: Mac | None = None
    taken_ms: Millis
    """By the machine's clock."""
    uptime_ms: Millis = 0
    expected: Annotated[tuple[FactName, ...], Field(max_length=64)] = ()
    """What it was judged by: keys of the inventory's `health`."""
    checks: Annotated[tuple[CheckResult, ...], Field(min_length=1, max_length=64), AfterValidator(_once)]

    @property
    def status(self) -> HealthStatus:
        """The worst of all checks."""
        statuses = {check.status for check in self.checks}
        return next((status for status in WORST if status in statuses), "pass")
