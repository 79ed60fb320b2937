"""Orders to drain and to reboot that other replicas took are known here, too: the process `resources` has written what
objects say of them to `data/resources/orders.json`.

Where that cannot be read, what stands stands.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

from images.values.faults import first_few
from netboot.config import Config
from netboot.controllers.acting import Acting
from netboot.controllers.loop import Rollouts
from netboot.lifecycle.order_objects import KIND, OrderObject, kept_object
from netboot.machines.resources import Resource
from netboot.status.resources import Followed
from netboot.stores.drains import SqliteDrains
from netboot.stores.resources import FOLDER, ORDERS, KeptResources
from netboot.stores.shared_drains import GONE, SharedDrains
from netboot.stores.status import StatusFolder

log = logging.getLogger(__name__)

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
        self._due: bool = True
        """Whether they are to be taken over, still or again."""
        self._as_of_ms = -1
        self._faults = ""

    def settle(self) -> str:
        seen_ms = self._seen_ms()  # before what it is of: that may only be newer
        if self._objects is None or not self._kept.stands():
            self._objects, self._due = None, True
            self._objects, self._faults = _read(self._kept.read())
        as_of_ms = max(self._kept.at_ms, seen_ms)
        if not self._due and as_of_ms == self._as_of_ms:
            return self._faults
        gone, self._due = self._drains.follow(self._objects if self._due else None, as_of_ms)
        self._as_of_ms = as_of_ms
        for drain in gone:
            fields = {"machine": drain.machine, "boot": drain.boot, "order": drain.id}
            log.info("%s of %s has ended: %s", drain.what, drain.machine, GONE, extra={"fields": fields})
        return self._faults


def _read(resources: Iterable[Resource]) -> tuple[list[OrderObject], str]:
    """All, and what cannot be read of some, in words; "": nothing."""
    objects = sorted(map(kept_object, resources), key=lambda each: each.name)
    ids = Counter(each.drain.id for each in objects if each.drain is not None)
    for place, each in enumerate(objects):
        if each.drain is not None and ids[each.drain.id] > 1:
            fault = f"{KIND}/{each.name}: spec.id: another object has the same"
            objects[place] = each._replace(drain=None, fault=fault)
    return objects, first_few([each.fault for each in objects if each.drain is None])


def ordering(config: Config, loop: Rollouts, drains: SqliteDrains) -> Rollouts:
    """The loop, with what follows orders of other replicas, where they are shared."""
    place = config.inventory_kubernetes
    if place is None or not isinstance(drains, SharedDrains):
        return loop
    folder = StatusFolder(config.data / FOLDER)

    def seen_ms() -> int:
        said = folder.read(FOLLOWED, Followed)
        return said.seen_ms if said is not None else 0

    return AndOrders(loop, KeptResources(config.data, place.namespace, ORDERS), seen_ms, drains)
