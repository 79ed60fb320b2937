"""What is shown of machines."""

from pydantic import Field

from netboot.lifecycle.decide import Decision
from netboot.lifecycle.intents import Intent
from netboot.lifecycle.state import Claims
from netboot.machines.values import Machine
from netboot.web.binding import Shown
from netboot.web.pages import Paged
from netboot.web.shapes import (
    CheckedBrief,
    CheckedReport,
    ConditionShown,
    Document,
    DrainShown,
    IdentityShown,
    RemediesOf,
    TraceShown,
)


class MachineListed(Machine):
    """A machine with its boots. `conditions`: none where it was not judged yet, null where they cannot be told."""

    current: TraceShown | None
    pending: TraceShown | None
    claims: Claims
    checked: CheckedBrief | None
    conditions: tuple[ConditionShown, ...] | None


class Machines(Paged):
    """In the order of the inventory."""

    machines: tuple[MachineListed, ...]


class SaidSeconds(Shown):
    """`said_by`: whose word it is; empty for a default."""

    seconds: int
    said_by: str


class SaidBoots(Shown):
    """The same of a number of boots; 0 for no limit."""

    boots: int
    said_by: str


class MachineShown(Machine, IdentityShown):
    """One machine. What is null where it could be a list cannot be told now; `hardware`: the document of its class,
    where it names one."""

    rack: str | None = None
    position: int | None = None
    accelerator_domain: str | None
    current: TraceShown | None
    pending: TraceShown | None
    claims: Claims
    decision: Decision
    boots: tuple[TraceShown, ...]
    checked: CheckedReport | None
    conditions: tuple[ConditionShown, ...] | None
    deadlines: dict[str, SaidSeconds]
    intents: tuple[Intent, ...] | None
    drains: tuple[DrainShown, ...] | None
    boot_limit: SaidBoots
    hardware: Document | None = Field(None, exclude_if=lambda document: document is None)


class ExplainedInPart(IdentityShown):
    """What a machine gets, where its boots cannot be told."""

    decision: Decision
    remedies: RemediesOf | None
    hardware: Document | None = Field(None, exclude_if=lambda document: document is None)


class Explained(ExplainedInPart):
    """What a machine gets, and how far its boot is."""

    current: TraceShown | None
    pending: TraceShown | None
    checked: CheckedReport | None
