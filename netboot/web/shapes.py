"""What several answers of the API are made of."""

from typing import Annotated, Any, Literal

from pydantic import Field

from netboot.join.enrolment import Alert
from netboot.join.register import EnrolmentView
from netboot.lifecycle.boot_facts import Certificate, Script
from netboot.lifecycle.drains import Drain, State
from netboot.lifecycle.health import HealthReport, HealthStatus
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reached import Failure, Reached
from netboot.lifecycle.reasons import ConditionType, Reason, Status
from netboot.lifecycle.remedies import Remedy, Standing
from netboot.lifecycle.state import Checked
from netboot.web.binding import Shown
from netboot.web.moments import SCHEMA
from netboot.web.pages import Paged

Did = Literal["ordered", "replaced", "taken-off", ""]


class TraceShown(Shown):
    """A boot with what follows from what is known of it: times in milliseconds since 1970."""

    boot: str
    machine: str
    script: Script | None
    reached: tuple[Reached, ...]
    failures: tuple[Failure, ...]
    certificates: tuple[Certificate, ...]
    found_crashes: int
    """How many crashes of kernels before its own it found; `crashed` has the others' facts."""
    console_ms: int | None
    """When the last lines of its console came; null: none did."""
    claim: bool
    standing: str
    state: Phase
    reason: str
    started_ms: int
    last_ms: int
    last_served: Phase | None
    last_reported: Phase | None
    last_observed: Phase | None
    kernel_ms: int | None
    seconds_to_ready: float | None


class ConditionShown(Shown):
    """As Kubernetes has conditions, by the names that it gives these fields. `said`: the machine's own words in
    `message`, as it said them; left out where there are none."""

    type: ConditionType
    status: Status
    reason: Reason
    message: str
    said: str = Field("", exclude_if=lambda said: not said)
    lastTransitionTime: Annotated[str, Field(json_schema_extra=dict(SCHEMA))]  # noqa: N815 - Kubernetes' name


class CrashShown(Shown):
    """A crash. `boot`: the one that crashed, null where that cannot be told; `text`: the end of its log, null where it
    cannot be read (any more)."""

    at_ms: int
    crashed_ms: int
    peer: str
    text: str | None
    boot: str | None
    found_by: str


class ConsoleShown(Shown):
    """The last lines of the console that a boot sent, its own word. `uptime_ms`: since its kernel started; `text`: null
    where it cannot be read, or is longer ago than is kept."""

    at_ms: int
    uptime_ms: int
    peer: str
    text: str | None


class CheckedBrief(Checked):
    """How the checks turned out. `stale`: that is too old to tell anything of now."""

    stale: bool


class CheckedReport(Shown):
    """The latest health report of a boot. `stale`: it is too old to tell anything of now."""

    boot: str
    at_ms: int
    source: str
    peer: str
    status: HealthStatus
    stale: bool
    report: HealthReport


class DrainShown(Drain):
    """With how far it is: null where that is not known, or it has ended."""

    state: State | None


class Drains(Paged):
    """What stands, by machine; `problems`: what keeps it from being carried out."""

    drains: tuple[DrainShown, ...]
    problems: tuple[str, ...]


class DrainsOf(Shown):
    """Of one machine: what stands and what ended, the latest first."""

    machine: str
    drains: tuple[DrainShown, ...]


class Out(Shown):
    """Who else is out of service: of its rack, machine → by whose word; and how many of all are by somebody's."""

    rack: str | None
    of_rack: dict[str, str]
    of_all: int


class DrainActed(Shown):
    """`did`: empty where it is so already; `out`: null where that cannot be told; `control_plane`: why a machine of one
    may not go now, empty where it may, null where it is of none."""

    machine: str
    act: str
    did: Did
    dry_run: bool
    out: Out | None
    control_plane: str | None
    drain: DrainShown | None


class RemediesOf(Shown):
    """Of one machine. `now`: null where it is well; `problem`: why this may not be how it is."""

    now: Standing | None
    problem: str
    latest: tuple[Remedy, ...]


class IdentityShown(Shown):
    """How a machine proves itself. `enrolment_problem`: why `enrolment` is null."""

    pcr_policy: str
    alerts: tuple[Alert, ...]
    enrolment: EnrolmentView | None
    enrolment_problem: str | None


Document = dict[str, Any]
"""What other pages describe: a class as a machine keeps it, what was at hand of a remedy."""
