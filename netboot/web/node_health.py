"""`/v1/machines/<name>/health`: what the machine's checks found, and what they should have found."""

from netboot.lifecycle.health import STALE_MS
from netboot.lifecycle.state import Checked, MachineState
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.views import machine_named
from netboot.machines.health import expected_of
from netboot.web import render
from netboot.web.binding import Shown
from netboot.web.dependencies import dependencies
from netboot.web.shapes import CheckedBrief, CheckedReport, Document


class MachineHealth(Shown):
    """`expected`: what the inventory says now (docs/health.md)."""

    machine: str
    expected: Document
    checked: CheckedReport | None


def shown(name: str) -> MachineHealth:
    """The report of its current boot, and what the inventory expects now."""
    view = dependencies().live.view()
    machine = machine_named(view, name)
    current = dependencies().states.machines([name]).get(name, MachineState(machine=name)).current
    expected = expected_of(view.profiles[machine.profile].health, machine.health)
    expectations = expected.model_dump(mode="json", exclude_defaults=True)
    return MachineHealth(machine=name, expected=expectations, checked=report_of(current))


def brief(checked: Checked | None) -> CheckedBrief | None:
    """How it turned out, for lists."""
    return render.grown(CheckedBrief, checked, stale=_stale(checked.at_ms)) if checked is not None else None


def _stale(at_ms: int) -> bool:
    return at_ms < dependencies().clock.now_ms() - STALE_MS


def report_of(trace: Trace | None) -> CheckedReport | None:
    """The latest report of a boot; None: it has sent none."""
    record = dependencies().states.health(trace.boot) if trace is not None else None
    if record is None:
        return None
    return CheckedReport.model_construct(
        boot=record.boot,
        at_ms=record.at_ms,
        source="reported",
        peer=record.peer,
        status=record.report.status,
        stale=_stale(record.at_ms),
        report=record.report,
    )
