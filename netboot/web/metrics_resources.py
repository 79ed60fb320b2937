"""Metrics of objects of a cluster: of who reads the inventory's, who writes how machines are into theirs, and who reads
the keys that replicas share."""

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from images.values.strict import Strict
from netboot.status.keys import KeysStatus
from netboot.status.resources import ResourcesStatus, ShipperStatus


def _resources(status: ResourcesStatus) -> Iterator[Metric]:
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


def _shipper(status: ShipperStatus) -> Iterator[Metric]:
    """All of them. The lag is left out where it cannot be told."""
    text = "Objects of machines whose status is to be written, or looked at."
    yield GaugeMetricFamily("netboot_shipper_behind_objects", text, value=status.behind)
    if status.lag_seconds is not None:
        text = "For how long the object has been behind that has been so for longest."
        yield GaugeMetricFamily("netboot_shipper_lag_seconds", text, value=status.lag_seconds)
    text = "How many writes a second the API server is asked to take at most, as it goes now."
    yield GaugeMetricFamily("netboot_shipper_writes_per_second", text, value=status.a_second)
    text = "Statuses that were written, since the process was started."
    yield CounterMetricFamily("netboot_shipper_writes", text, value=status.written)
    text = "Events about machines that are to be written."
    yield GaugeMetricFamily("netboot_shipper_waiting_events", text, value=status.events_waiting)
    text = "Events that were not written, for too many waited or the API server took them not, since the start."
    yield CounterMetricFamily("netboot_shipper_dropped_events", text, value=status.events_dropped)
    text = "Objects of machines whose status the API server refuses."
    yield GaugeMetricFamily("netboot_shipper_refused_objects", text, value=status.refused)
    text = "Objects of machines whose status somebody else writes, too."
    yield GaugeMetricFamily("netboot_shipper_overwritten_objects", text, value=status.overwritten)
    text = "Writes that failed, since the process was started."
    yield CounterMetricFamily("netboot_shipper_failures", text, value=status.failed)


def _keys(status: KeysStatus) -> Iterator[Metric]:
    """All of them. The age is left out where the API server has never been read."""
    if status.age_seconds is not None:
        text = "For how long the API server has not said that the keys in use are those of the Secret."
        yield GaugeMetricFamily("netboot_keys_age_seconds", text, value=status.age_seconds)
    text = "1: the keys in use are those of the Secret, and the API server was told so."
    yield GaugeMetricFamily("netboot_keys_followed", text, value=int(status.ok))
    text = "Times that the Secret could not be followed, since the process was started."
    yield CounterMetricFamily("netboot_keys_unavailable", text, value=status.unavailable)


OF_OBJECTS: tuple[tuple[str, type[Strict], Callable[[Any], Iterator[Metric]]], ...] = (
    ("resources", ResourcesStatus, _resources),
    ("shipper", ShipperStatus, _shipper),
    ("keys", KeysStatus, _keys),
)
"""What these processes say of themselves, and the metrics of it."""
