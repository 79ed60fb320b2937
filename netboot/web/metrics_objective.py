"""Metrics of how long boots take until machines work, each boot counted once (`netboot.lifecycle.objective`)."""

from collections.abc import Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

from netboot.lifecycle.objective import Durations

_LABELS = ["target", "class", "image"]


def objective(found: Iterable[Durations]) -> Iterator[Metric]:
    """The histograms, and what of the first one's sum no phase accounts for."""
    text = "Boots by seconds from the start of their kernel until their Node was Ready, or in service."
    durations = HistogramMetricFamily("netboot_boot_duration_seconds", text, labels=_LABELS)
    text = "Seconds of these that no phase accounts for, because a phase between two others was never heard of."
    unaccounted = CounterMetricFamily("netboot_boot_unaccounted_seconds", text, labels=_LABELS)
    text = "Boots by seconds from reaching a phase until they reached the next one."
    phases = HistogramMetricFamily("netboot_boot_phase_duration_seconds", text, labels=["phase", *_LABELS[1:]])
    for each in found:
        if each.phase is not None:
            phases.add_metric([each.phase, each.hardware, each.image], each.buckets(), each.ms / 1000)
            continue
        labels = [each.target, each.hardware, each.image]
        durations.add_metric(labels, each.buckets(), each.ms / 1000)
        unaccounted.add_metric(labels, each.unaccounted_ms / 1000)
    yield from (durations, unaccounted, phases)
