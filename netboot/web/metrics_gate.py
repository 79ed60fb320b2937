"""Metrics of the gates: how many Nodes may take work, and what the gates did."""

from collections.abc import Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from netboot.status.nodes import NodesStatus


def gates(collectors: Mapping[str, NodesStatus]) -> Iterator[Metric]:
    """By cluster."""
    text = "Nodes of netboot's by their gate: open, shut (never open yet), closed (after it had been open)."
    nodes = GaugeMetricFamily("netboot_gate_nodes", text, labels=["cluster", "state"])
    text = "Gates that were opened and closed."
    moved = CounterMetricFamily("netboot_gate_moves", text, labels=["cluster", "move"])
    text = "Nodes that would be closed, but for the budget of closings."
    withheld = GaugeMetricFamily("netboot_gate_withheld_nodes", text, labels=["cluster"])
    text = "1: gates, or that of one Node, are not moved at the moment; the log of the node collector says why."
    failing = GaugeMetricFamily("netboot_gate_failing", text, labels=["cluster"])
    for cluster, status in collectors.items():
        for state, count in status.gates.items():
            nodes.add_metric([cluster, state], count)
        for move, count in status.gates_moved.items():
            moved.add_metric([cluster, move], count)
        withheld.add_metric([cluster], status.gates_withheld)
        failing.add_metric([cluster], int(bool(status.gate_problem)))
    yield from (nodes, moved, withheld, failing)
