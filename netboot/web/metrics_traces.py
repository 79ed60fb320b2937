"""Metrics of traces of boots that are exported."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from netboot.status.traces import TracesStatus


def traces(status: TracesStatus) -> Iterator[Metric]:
    """All of them."""
    yield GaugeMetricFamily("netboot_traces_waiting_boots", "Boots that wait for the collector.", value=status.waiting)
    text = "Boots that were exported as traces, since the process was started."
    yield CounterMetricFamily("netboot_traces_exported_boots", text, value=status.exported)
    text = "Boots that were not exported, for too many waited, they were forgotten, or rejected."
    yield CounterMetricFamily("netboot_traces_dropped_boots", text, value=status.dropped)
    text = "Tries to export that failed, since the process was started."
    yield CounterMetricFamily("netboot_traces_failures", text, value=status.failed)
