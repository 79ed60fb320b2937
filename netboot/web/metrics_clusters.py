"""Metrics of clusters: what the approvers decided, and what the node collectors see."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from images.values.strict import Strict
from netboot.status import FRESH_MS, Timed, up_ms
from netboot.status.approver import ApproverStatus
from netboot.status.controllers import RolloutsStatus
from netboot.status.leading import LeaderStatus
from netboot.status.nodes import NodesStatus
from netboot.status.resources import ShipperStatus
from netboot.web.metrics_gate import gates
from netboot.web.metrics_leaders import leaders

S = TypeVar("S", bound=Strict)


class Read(Protocol):
    """What a process says of itself; None: nothing that can be read."""

    def __call__(self, process: str, model: type[S]) -> S | None: ...


def clusters(processes: Iterable[str], read: Read) -> Iterator[Metric]:
    """Of each cluster, by the processes of the service that are there."""
    text = "Certificate requests by what the approver did, since it was started; reason, or purpose if approved."
    decided = CounterMetricFamily("netboot_certificate_requests", text, labels=["cluster", "outcome", "reason"])
    text = "Times that the cluster could not be asked, since the process was started."
    unavailable = CounterMetricFamily("netboot_cluster_unavailable", text, labels=["process"])
    text = "Requests that the approver has to see to."
    waiting = GaugeMetricFamily("netboot_certificate_requests_waiting", text, labels=["cluster"])
    text = "Nodes of machines of the inventory, as the cluster has them."
    nodes = GaugeMetricFamily("netboot_nodes", text, labels=["cluster", "state"])
    text = "1: the process sees its cluster, and can do there what it is for."
    followed = GaugeMetricFamily("netboot_cluster_followed", text, labels=["process"])
    collectors: dict[str, NodesStatus] = {}
    elections: dict[str, tuple[LeaderStatus, bool]] = {}
    for process in processes:
        kind, _, cluster = process.partition("-")
        if kind == "approver" and (approver := read(process, ApproverStatus)) is not None:
            elections |= {process: (approver.leader, _fresh(approver))} if approver.leader is not None else {}
            unavailable.add_metric([process], approver.unavailable)
            followed.add_metric([process], int(approver.followed))
            waiting.add_metric([cluster], approver.waiting)
            for outcome, reason, count in approver.decided:
                decided.add_metric([cluster, outcome, reason], count)
        elif kind == "nodes" and (collector := read(process, NodesStatus)) is not None:
            collectors[cluster] = collector
            elections |= {process: (collector.leader, _fresh(collector))} if collector.leader is not None else {}
            unavailable.add_metric([process], collector.unavailable)
            followed.add_metric([process], int(collector.ok))
            nodes.add_metric([cluster, "registered"], collector.registered)
            nodes.add_metric([cluster, "ready"], collector.ready)
        elif kind == "shipper" and (shipper := read(process, ShipperStatus)) is not None:
            elections |= {process: (shipper.leader, _fresh(shipper))} if shipper.leader is not None else {}
    if (rollouts := read("rollouts", RolloutsStatus)) is not None and rollouts.leader is not None:
        elections["rollouts"] = rollouts.leader, _fresh(rollouts)
    yield from (decided, unavailable, followed, waiting, nodes, *gates(collectors), *leaders(elections))


def _fresh(said: Timed) -> bool:
    """Whether it counts: who is stuck, or gone, said it of another time."""
    return up_ms() - said.up_ms <= FRESH_MS
