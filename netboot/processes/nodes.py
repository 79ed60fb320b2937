"""The processes `nodes-<cluster>`: which boots have become Nodes, which of those are Ready (docs/approver.md), and
which may take work (docs/gate.md)."""

import functools
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from netboot.clock import SystemClock
from netboot.config_nodes import Cluster
from netboot.controllers.approver.knowledge import Machines
from netboot.controllers.nodes.accepted import AcceptedNow
from netboot.controllers.nodes.caught_up import joins_read_up_ms
from netboot.controllers.nodes.collector import Collector
from netboot.controllers.nodes.control_plane import ControlPlaneLook
from netboot.controllers.nodes.cordoned import CordonsSaid, file_of
from netboot.controllers.nodes.drainer import Drainer
from netboot.controllers.nodes.gating import GateController
from netboot.controllers.nodes.holds import JudgedHolds
from netboot.controllers.nodes.judged import JudgedNow
from netboot.controllers.nodes.observed import ObservedFile
from netboot.controllers.nodes.proven_boots import ProvenBoots
from netboot.controllers.nodes.remedied import TakenSince
from netboot.controllers.nodes.telling import Teller
from netboot.join.labels import written
from netboot.join.node_drains import DRAIN
from netboot.join.node_events import NodeEvents
from netboot.join.ports import Nodes
from netboot.join.preconditions import rights
from netboot.kube.connection import connect
from netboot.kube.control_plane import KubeControlPlane
from netboot.kube.drains import KubeDrains
from netboot.kube.events import KubeNodeEvents
from netboot.kube.nodes import KubeNodes
from netboot.kube.preconditions import KubePreconditions
from netboot.machines.classes import Class
from netboot.machines.topology import NOWHERE
from netboot.machines.values import Machine
from netboot.process import ProcessSpec
from netboot.processes.leading import leading
from netboot.processes.shared import shares_orders
from netboot.status import up_ms
from netboot.status.nodes import NodesStatus
from netboot.status.reporting import Reporting
from netboot.stores import control_planes
from netboot.stores.commits import Commits
from netboot.stores.conditions import SqliteConditions
from netboot.stores.drains import KEPT, SqliteDrains
from netboot.stores.facts import Facts
from netboot.stores.intents import SqliteIntents
from netboot.stores.known_orders import as_of_ms, untold
from netboot.stores.live import LiveView
from netboot.stores.remedies import SqliteRemedies
from netboot.stores.state import SqliteStates
from netboot.stores.status import StatusFile, StatusFolder


def run(spec: ProcessSpec) -> None:
    """Follow one cluster's Nodes until told to stop."""
    config, cluster = spec.config, spec.cluster
    facts = Facts(config.data / "journal" / f"{spec.name}.db")
    live = LiveView(config.data / "snapshot.json")
    machines = Machines(cluster, live.view)
    states = SqliteStates(config.data / "state.db")

    leads = leading(config, spec.kind, cluster)

    connected = functools.partial(connect, config.clusters[cluster].nodes, acting=leads.acting)

    @functools.cache
    def nodes() -> Nodes:
        return KubeNodes(connected())

    def classes() -> dict[str, Class]:
        return {each.name: each for each in live.view().snapshot.inventory.classes}

    def names() -> list[str]:
        return [each.name for each in machines.all().values()]

    def events() -> NodeEvents:
        return KubeNodeEvents(connected(), spec.name)

    def judged() -> JudgedNow:
        conditions = config.data / "conditions.db"
        return JudgedNow(Commits(conditions), SqliteConditions(conditions), names)

    def joins_read() -> int:
        return joins_read_up_ms(StatusFolder(config.data / "status"))

    def labels(machine: Machine) -> Mapping[str, str]:
        rack = live.view().racks[machine.rack].topology if machine.rack is not None else NOWHERE
        return written(machine, rack, config.clusters[cluster].labels)

    now_ms, wanted = SystemClock().now_ms, config.data / "intents.db"
    accepted = AcceptedNow(Commits(wanted), SqliteIntents(wanted), now_ms).machines
    held = JudgedHolds(judged().found)
    told_ms = now_ms if config.clusters[cluster].gate_condition else None
    gate = GateController(
        nodes, machines.all, classes, states, held, labels, accepted, up_ms, told_ms=told_ms, leads=leads.leads
    )
    teller = Teller(
        events,
        judged().found,
        gate.nodes,
        now_ms,
        TakenSince(SqliteRemedies(wanted)).news,
        leads=leads.leads,
        another=leads.another,
    )
    collector = Collector(
        nodes, machines.all, states, facts, gate, SystemClock(), joins_read, several=config.replicas is not None
    )
    drainer = Drainer(
        connect=lambda: KubeDrains(connected()),
        orders=SqliteDrains(wanted).standing,
        machines=machines.all,
        classes=classes,
        marked=functools.partial(gate.with_taint, DRAIN),
        boots=ProvenBoots(states, several=config.replicas is not None),
        say=StatusFile(config.data / "status", f"drains-{cluster}").write,
        lacks=functools.partial(_lacks, config.clusters[cluster]),
        now_ms=now_ms,
        leads=leads.leads,
        given=_given(SqliteDrains(wanted)) if config.replicas is not None else None,
        untold=functools.partial(_untold, wanted, now_ms) if shares_orders(config) else None,
    )
    control_plane = ControlPlaneLook(
        connect=lambda: KubeControlPlane(connect(config.clusters[cluster].nodes)),
        machines=machines.all,
        say=StatusFile(config.data / "status", control_planes.file_of(cluster)).write,
        now_ms=now_ms,
    )
    observed, status = ObservedFile(config.data / "status", cluster), StatusFile(config.data / "status", spec.name)
    cordons = CordonsSaid(gate.cordons, StatusFile(config.data / "status", file_of(cluster)).write, now_ms)

    def say(said: Reporting) -> bool:
        cordons.say(followed=isinstance(said, NodesStatus) and said.followed)
        # first: who reads a status that is fresh reads Nodes that are
        return observed.write(collector.nodes(), gate.words()) and status.write(said)

    teller.start()
    drainer.start()
    control_plane.start()
    leads.run(collector, say, spec)
    facts.close()


def _given(drains: SqliteDrains) -> Callable[[str], Collection[str]]:
    return lambda machine: {each.id for each in drains.of(machine, KEPT)}


def _untold(path: Path, now_ms: Callable[[], int]) -> str:
    """Why it cannot be told what was ordered or taken off by other replicas; "": it can. Raises CannotTellError."""
    return untold("what other replicas ordered, or took off,", as_of_ms(path), now_ms())


def _lacks(cluster: Cluster) -> str:
    """Which rights the nodes account has not that it needs, and what to do; "": it has all. Raises CannotTellError."""
    finding = rights(KubePreconditions(connect(cluster.nodes), cluster.namespace), "nodes")
    return "" if finding.outcome == "ok" else f"{finding.words}: {finding.remedy}"
