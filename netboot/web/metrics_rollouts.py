"""Metrics of rollouts that are under way."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from netboot.lifecycle.rollout import UNDER_WAY
from netboot.status.controllers import RolloutsStatus


def rollouts(status: RolloutsStatus) -> Iterator[Metric]:
    """All of them; what has ended is in none."""
    text = "Rollouts that are under way, by whether they go on or somebody has to look."
    states = GaugeMetricFamily("netboot_rollouts", text, labels=["state"])
    for state in sorted(UNDER_WAY):
        states.add_metric([state], sum(each.state == state for each in status.rollouts))
    text = "Machines of a rollout that is under way, by where they are on their way to its image."
    machines = GaugeMetricFamily("netboot_rollout_machines", text, labels=["channel", "rollout", "state"])
    for each in status.rollouts:
        for where, count in each.machines.items():
            machines.add_metric([each.channel, str(each.number), where], count)
    yield from (states, machines)
