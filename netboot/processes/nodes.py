"""The processes `nodes-<cluster>`: which boots have become Nodes, and which of those are Ready (docs/approver.md)."""

from netboot.clock import SystemClock
from netboot.controllers import runner
from netboot.controllers.approver.knowledge import Machines
from netboot.controllers.nodes.collector import Collector
from netboot.controllers.nodes.observed import ObservedFile
from netboot.join.ports import Nodes
from netboot.kube.connection import connect
from netboot.kube.nodes import KubeNodes
from netboot.process import ProcessSpec
from netboot.status import Reporting
from netboot.stores.facts import Facts
from netboot.stores.live import LiveView
from netboot.stores.state import SqliteStates
from netboot.stores.status import StatusFile


def run(spec: ProcessSpec) -> None:
    """Follow one cluster's Nodes until told to stop."""
    config, cluster = spec.config, spec.cluster
    facts = Facts(config.data / "journal" / f"{spec.name}.db")
    machines = Machines(cluster, LiveView(config.data / "snapshot.json").view)
    states = SqliteStates(config.data / "state.db")

    def nodes() -> Nodes:
        return KubeNodes(connect(config.clusters[cluster].nodes))

    collector = Collector(nodes, machines.all, states, facts, SystemClock())
    observed, status = ObservedFile(config.data / "status", cluster), StatusFile(config.data / "status", spec.name)

    def say(said: Reporting) -> None:
        if observed.write(collector.nodes()):  # first: who reads a status that is fresh reads Nodes that are
            status.write(said)

    runner.run(collector, say, spec.say_ready, spec.heartbeat())
    facts.close()
