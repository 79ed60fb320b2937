"""How the process `controllers` follows holds that objects declare, where `inventory_kubernetes.holds` has it so."""

from netboot.config import Config
from netboot.controllers.holds import AndHolds
from netboot.controllers.loop import Rollouts
from netboot.controllers.snapshot_publisher import SnapshotPublisher
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import IntentStore
from netboot.lifecycle.ports import Clock
from netboot.machines.values import Inventory
from netboot.stores.holds import SaidHolds
from netboot.stores.inventory import holds_in
from netboot.stores.resources import HOLDS, KeptResources


def holding(
    config: Config, loop: Rollouts, intents: IntentStore, publisher: SnapshotPublisher, clock: Clock
) -> Rollouts:
    """The loop, with what follows them."""
    if (namespace := holds_in(config)) is None:
        return loop
    told = SaidHolds(config.data)
    try:
        before = told.read()
    except CannotTellError:
        before = None
    kept = KeptResources(config.data, namespace, HOLDS)

    def in_force() -> Inventory | None:
        published = publisher.published
        return published.inventory if published is not None else None

    return AndHolds(loop, namespace, kept, intents, in_force, told.write, before, clock)
