"""Orders to drain and to reboot that other replicas took are known here, too: the process `resources` has written what
objects say of them to `data/resources/orders.json`.

Where that cannot be read, what stands stands.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from images.values.faults import first_few
from netboot.config import Config
from netboot.controllers.acting import Acting
from netboot.controllers.loop import Rollouts
from netboot.lifecycle.order_objects import OrderObject, apart, kept_object
from netboot.machines.resources import Resource
from netboot.status.resources import Followed
from netboot.stores.drains import SqliteDrains
from netboot.stores.resources import FOLDER, ORDERS, KeptResources
from netboot.stores.shared_drains import SharedDrains
from netboot.stores.status import StatusFolder

STAYS = "what other replicas ordered cannot be told, and stays as it was"
FOLLOWED = f"followed_{ORDERS}"
"""File of when they were seen last."""


class Kept(Protocol):
    """What there is: `netboot.stores.resources.KeptResources`."""

    at_ms: int
    """Of when what was read is."""

    def read(self) -> Iterable[Resource]:
        """Raises FaultsError: it cannot be told."""
        ...

    def stands(self) -> bool:
        """Whether it is what was read last."""
        ...


class AndOrders(Acting):
    """A loop, with this. `seen_ms()`: when the API server last said that they are as they are kept; 0: that is not
    known; raises CannotTellError."""

    def __init__(self, loop: Rollouts, kept: Kept, seen_ms: Callable[[], int], drains: SharedDrains) -> None:
        super().__init__(loop, "orders", STAYS)
        self._kept, self._seen_ms, self._drains = kept, seen_ms, drains
        self._objects: list[OrderObject] | None = None
        """As they were read last; None: not yet."""
        self._as_of_ms, self._unbelieved = -1, list[str]()

    def settle(self) -> str:
        seen_ms = self._seen_ms()  # before what it is of: that may only be newer
        if self._objects is None or not self._kept.stands():
            self._objects, self._as_of_ms = None, -1
            self._objects = apart(map(kept_object, self._kept.read()))
        # with a clock that was set back what was written before is of no moment
        at_ms = self._kept.at_ms if self._kept.at_ms <= self._drains.now_ms() else 0
        as_of_ms = max(at_ms, seen_ms)
        if as_of_ms != self._as_of_ms:  # with time that is believed, too, which may have been too early before
            self._unbelieved = self._drains.follow(self._objects, as_of_ms)
            self._as_of_ms = as_of_ms
        return first_few([*(each.fault for each in self._objects if each.drain is None), *self._unbelieved])


def ordering(config: Config, loop: Rollouts, drains: SqliteDrains) -> Rollouts:
    """The loop, with what follows orders of other replicas, where they are shared."""
    place = config.inventory_kubernetes
    if place is None or not isinstance(drains, SharedDrains):
        return loop
    folder = StatusFolder(config.data / FOLDER)

    def seen_ms() -> int:
        said = folder.read(FOLLOWED, Followed)
        return max(said.seen_ms, said.came_ms) if said is not None else 0

    return AndOrders(loop, KeptResources(config.data, place.namespace, ORDERS), seen_ms, drains)
