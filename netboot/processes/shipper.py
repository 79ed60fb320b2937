"""The process `shipper`, with `inventory_kubernetes.shipper`: objects of machines say how their machines are
(docs/custom-resources.md)."""

from netboot.clock import SystemClock
from netboot.controllers import runner
from netboot.controllers.hold_statuses import AndHoldStatuses
from netboot.controllers.shipper import ShipperController
from netboot.kube.connection import connect
from netboot.kube.machine_objects import KubeHoldObjects, KubeMachineObjects
from netboot.process import ProcessSpec
from netboot.stores.conditions import SqliteConditions
from netboot.stores.holds import SaidHolds
from netboot.stores.live import LiveView
from netboot.stores.object_facts import ObjectFacts
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
    known = ObjectFacts(LiveView(data / "snapshot.json"), states, conditions, statuses)
    shipper = ShipperController(
        known, lambda: KubeMachineObjects(connect(kubeconfig, manifests="inventory"), namespace), SystemClock()
    )
    controller: runner.Controller = shipper
    if place.holds:
        said = SaidHolds(data).read
        controller = AndHoldStatuses(
            shipper, said, lambda: KubeHoldObjects(connect(kubeconfig, manifests="inventory"), namespace)
        )
    runner.run(controller, StatusFile(data / "status", spec.name).write, spec.say_ready, spec.heartbeat())
