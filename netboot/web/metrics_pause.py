"""Metrics of whoever outside says whether anything may begin."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from netboot.status.pause import PauseStatus


def pause_signal(status: PauseStatus) -> Iterator[Metric]:
    """Only where somebody is asked."""
    text = "1 for what is said from outside of whether anything may begin: go, pause, or that it cannot be told."
    says = GaugeMetricFamily("netboot_pause_signal", text, labels=["says"])
    for word, so in (("go", status.may), ("pause", status.ok and not status.may), ("unknown", not status.ok)):
        says.add_metric([word], float(so))
    yield says
    text = "Times that somebody outside was asked in vain, since the process was started."
    yield CounterMetricFamily("netboot_pause_signal_failures", text, value=status.failed)
