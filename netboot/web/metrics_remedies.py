"""Metrics of what is done by itself about machines that are not well."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from netboot.lifecycle.remedies import RemediesStatus


def remedies(status: RemediesStatus) -> Iterator[Metric]:
    """All of them."""
    text = "1: no remedy begins until somebody resumes, for a person or a fleet-wide cause stopped them."
    yield GaugeMetricFamily("netboot_remedies_paused", text, value=int(bool(status.paused)))
    if status.ailing or not status.unseen:
        text = "Machines that are not well by what may be acted on; no 0 while that cannot be told of all."
        yield GaugeMetricFamily("netboot_remedies_ailing_machines", text, value=status.ailing)
        text = "Of those, machines whose remedy is due and withheld."
        yield GaugeMetricFamily("netboot_remedies_withheld_machines", text, value=status.withheld)
    text = "Machines under a remedy: until they are back in service, or readmitted."
    yield GaugeMetricFamily("netboot_remedies_machines", text, value=status.under)
    text = "Remedies taken, since the process was started."
    taken = CounterMetricFamily("netboot_remedies_taken", text, labels=["what"])
    for what, count in sorted(status.taken.items()):
        taken.add_metric([what], count)
    yield taken
