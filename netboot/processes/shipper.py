"""The process `shipper`, with `inventory_kubernetes.shipper`: objects of machines say how their machines are
(docs/custom-resources.md)."""

from functools import partial

from netboot.clock import SystemClock
from netboot.controllers.act_statuses import AndStatuses
from netboot.controllers.several import Several
from netboot.controllers.sharing import Sharing
from netboot.controllers.shipper import ShipperController
from netboot.kube.connection import connect
from netboot.kube.machine_objects import MANAGER, KubeMachineObjects, KubeStatuses
from netboot.kube.resources.kinds import HOLD, ORDER
from netboot.lifecycle import holds, order_objects
from netboot.process import ProcessSpec
from netboot.processes.leading import leading
from netboot.stores.conditions import SqliteConditions
from netboot.stores.facts import Facts
from netboot.stores.holds import SaidHolds
from netboot.stores.live import LiveView
from netboot.stores.object_facts import ObjectFacts
from netboot.stores.said_orders import SaidOrders
from netboot.stores.state import SqliteStates
from netboot.stores.status import StatusFile, StatusFolder


def run(spec: ProcessSpec) -> None:
    """Write until told to stop."""
    config, place = spec.config, spec.config.inventory_kubernetes
    assert place is not None
    assert place.shipper is not None
    kubeconfig, namespace, data = place.shipper, place.namespace, config.data
    states, conditions = SqliteStates(data / "state.db"), SqliteConditions(data / "conditions.db")
    statuses = StatusFolder(data / "status")
    live = LiveView(data / "snapshot.json")
    known = ObjectFacts(live, states, conditions, statuses, shares=config.replicas is not None)
    leads, several = leading(config, spec.kind, ""), Several()
    facts = None
    if config.replicas is not None:
        facts = Facts(data / "journal" / f"{spec.name}.db")
        several = Several(MANAGER, leads.leads, config.replicas.count, Sharing(states, facts, SystemClock()))
    connected = partial(connect, kubeconfig, manifests="inventory")
    shipper = ShipperController(
        known,
        lambda: KubeMachineObjects(connected(), namespace, versioned=config.replicas is not None),
        SystemClock(),
        several=several,
    )
    controller: ShipperController | AndStatuses = shipper
    if place.holds:
        said = SaidHolds(data).read
        controller = AndStatuses(controller, holds.KIND, said, lambda: KubeStatuses(connected(), namespace, HOLD))
    if place.orders is not None:
        orders = SaidOrders(data, namespace, config.clusters, live, SystemClock().now_ms).read
        kind = order_objects.KIND
        controller = AndStatuses(controller, kind, orders, lambda: KubeStatuses(connected(), namespace, ORDER))
    leads.run(controller, StatusFile(data / "status", spec.name).write, spec)
    if facts is not None:
        facts.close()
