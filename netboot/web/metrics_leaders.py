"""Metrics of who leads, where there are several replicas."""

from collections.abc import Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from netboot.status.leading import LeaderStatus


def leaders(said: Mapping[str, tuple[LeaderStatus, bool]]) -> Iterator[Metric]:
    """Of each process that takes part in an election, with whether it said so just now; nothing where there is one
    replica."""
    text = "1: this replica leads, as far as it knows now; 0: another does, that cannot be told, or it says nothing."
    leads = GaugeMetricFamily("netboot_leader", text, labels=["process"])
    text = "Which leader it is, by the Lease that this replica saw last; it grows with each."
    epoch = GaugeMetricFamily("netboot_leader_epoch", text, labels=["process"])
    text = "For how long nobody has led, as this replica sees it, in seconds."
    vacant = GaugeMetricFamily("netboot_leader_vacant_seconds", text, labels=["process"])
    for process, (leader, fresh) in said.items():
        leads.add_metric([process], int(leader.leads and fresh))
        epoch.add_metric([process], leader.epoch)
        if fresh:
            vacant.add_metric([process], leader.vacant_seconds)
    if said:
        yield from (leads, epoch, vacant)
