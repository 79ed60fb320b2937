"""Metrics of what the lifecycle found: how many machines are in which condition, and what it cannot see."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from netboot.lifecycle.reasons import STATUSES
from netboot.lifecycle.transitions import STEPS
from netboot.status.controllers import LifecycleStatus


def lifecycle(status: LifecycleStatus) -> Iterator[Metric]:
    """All of them; each condition and reason is there from the start, so that an alert finds it."""
    text = "Machines of the inventory by condition, its status, and the reason for that."
    conditions = GaugeMetricFamily("netboot_machine_conditions", text, labels=["condition", "status", "reason"])
    found = {(kind, reason): count for kind, reason, count in status.conditions}
    for kind, reasons in STATUSES.items():
        for reason, value in reasons.items():
            conditions.add_metric([kind, value, reason], found.get((kind, reason), 0))
    text = "Boots that are past the deadline of the furthest phase that they reached."
    overdue = GaugeMetricFamily("netboot_boots_overdue", text, labels=["phase"])
    for step in STEPS[:-1]:
        overdue.add_metric([step], status.overdue.get(step, 0))
    text = "Machines of which something is known that their conditions do not show yet."
    waiting = GaugeMetricFamily("netboot_lifecycle_waiting_machines", text, value=status.waiting)
    text = "Places that cannot be looked at now, so that deadlines stand still."
    unseen = GaugeMetricFamily("netboot_lifecycle_unseen_places", text, value=len(status.unseen))
    text = "For how long the machine waits that has waited longest."
    behind = GaugeMetricFamily("netboot_lifecycle_behind_seconds", text, value=status.behind_seconds)
    text = "Machines that the gate keeps from work and that have not been in service for an hour."
    gated = GaugeMetricFamily("netboot_machines_long_gated", text, value=status.long_gated)
    text = "Machines that are up, are not retired, and whose checks fail or are heard of no more."
    unhealthy = GaugeMetricFamily("netboot_machines_unhealthy", text, value=status.unhealthy)
    yield from (conditions, overdue, waiting, unseen, behind, gated, unhealthy)
