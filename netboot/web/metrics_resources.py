"""Metrics of custom resources that are the inventory."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from netboot.status.resources import ResourcesStatus


def resources(status: ResourcesStatus) -> Iterator[Metric]:
    """All of them. The age is left out where the API server has never been read."""
    objects = GaugeMetricFamily(
        "netboot_resources", "Objects of the inventory, as they were last read.", labels=["kind"]
    )
    for kind, count in status.objects.items():
        objects.add_metric([kind], count)
    yield objects
    if status.age_seconds is not None:
        text = "For how long the API server has said nothing of the inventory's objects."
        yield GaugeMetricFamily("netboot_resources_age_seconds", text, value=status.age_seconds)
    text = "1: the inventory's objects are followed."
    yield GaugeMetricFamily("netboot_resources_followed", text, value=int(status.ok))
    text = "Times that objects of a kind could not be followed, since the process was started."
    yield CounterMetricFamily("netboot_resources_unavailable", text, value=status.unavailable)
