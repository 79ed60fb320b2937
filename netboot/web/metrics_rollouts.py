"""Metrics of rollouts."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from netboot.lifecycle.rollout import UNDER_WAY
from netboot.status.controllers import RolloutsStatus


def rollouts(status: RolloutsStatus) -> Iterator[Metric]:
    """All of them; what has ended is in the last alone."""
    text = "Rollouts that are under way, by whether they go on or somebody has to look."
    states = GaugeMetricFamily("netboot_rollouts", text, labels=["state"])
    for state in sorted(UNDER_WAY):
        states.add_metric([state], sum(each.state == state for each in status.rollouts))
    text = "Machines of a rollout that is under way, by where they are on their way to its image."
    machines = GaugeMetricFamily("netboot_rollout_machines", text, labels=["channel", "rollout", "state"])
    for each in status.rollouts:
        for where, count in each.machines.items():
            machines.add_metric([each.channel, str(each.number), where], count)
    text = "Rollouts that were undone by themselves: under way when the process was started, or since then."
    yield from (states, machines, CounterMetricFamily("netboot_rollouts_auto_undone", text, value=status.undone))
