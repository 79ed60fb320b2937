"""The process `nodes-<cluster>`: what the node collector is made of."""

from collections.abc import Callable

from netboot.config import Config
from netboot.controllers import runner
from netboot.controllers.approver.knowledge import Machines
from netboot.controllers.nodes.collector import Collector
from netboot.join.ports import Nodes
from netboot.kube.connection import connect
from netboot.kube.nodes import KubeNodes
from netboot.lifecycle.ports import Clock
from netboot.stores.facts import Facts
from netboot.stores.live import LiveView
from netboot.stores.state import SqliteStates
from netboot.stores.status import write_status


def run(config: Config, cluster: str, clock: Clock, ready: Callable[[], None]) -> None:
    """Until told to stop."""
    name = f"nodes-{cluster}"
    facts = Facts(config.data / "journal" / f"{name}.db")
    machines = Machines(cluster, LiveView(config.data / "snapshot.json").view)
    states = SqliteStates(config.data / "state.db")

    def nodes() -> Nodes:
        return KubeNodes(connect(config.clusters[cluster].nodes))

    collector = Collector(nodes, machines.all, states, facts, clock)
    runner.run(collector, lambda said: write_status(config.data / "status", name, said), ready)
    facts.close()
