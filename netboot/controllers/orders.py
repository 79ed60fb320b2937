"""Orders to drain and to reboot that other replicas took are known here, too: the process `resources` has written what
objects say of them to `data/resources/orders.json`.

Where that cannot be read, what stands stands.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from images.values.faults import first_few
from images.values.strict import FaultsError
from netboot.config import Config
from netboot.controllers.loop import Rollouts
from netboot.controllers.snapshot_publisher import SnapshotPublisher
from netboot.lifecycle.drains import Drain
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.order_objects import order_of
from netboot.lifecycle.ports import Clock
from netboot.logs import Trouble
from netboot.machines.former import present_names
from netboot.machines.resources import Resource
from netboot.status import DEFECT
from netboot.status.controllers import RolloutsStatus
from netboot.stores.drains import SqliteDrains
from netboot.stores.resources import ORDERS, KeptResources

log = logging.getLogger(__name__)

STAYS = "what other replicas ordered cannot be told, and stays as it was"
GONE = "its object was deleted"
LATE_MS = 60_000
"""By so much what was read may be of before an order that is not in it: clocks of replicas go apart."""


class Kept(Protocol):
    """What there is: `netboot.stores.resources.KeptResources`."""

    at_ms: int
    """When it was read."""

    def read(self) -> Iterable[Resource]:
        """Raises FaultsError: it cannot be told."""
        ...

    def stands(self) -> bool:
        """Whether it is what was read last."""
        ...


class AndOrders:
    """A loop, with this. `present()`: former name → the name of now, of machines of the inventory in force."""

    def __init__(
        self,
        loop: Rollouts,
        kept: Kept,
        drains: SqliteDrains,
        present: Callable[[], Mapping[str, str]],
        clock: Clock,
    ) -> None:
        self._loop, self._kept, self._drains, self._present = loop, kept, drains, present
        self._clock = clock
        self._there: frozenset[str] | None = None
        """Machines of which there is an object; None: not read yet."""
        self._problem = ""
        self._defects = Trouble(log, "orders are not followed, by a defect", "orders are followed again")

    def step(self) -> None:
        """Take over what there is, then go on."""
        try:
            self._problem = self._follow()
        except (CannotTellError, FaultsError) as error:
            self._problem = f"{STAYS}: {error}"
        except Exception as error:  # noqa: BLE001 - said with its traceback; rollouts and drains go on
            self._problem = f"{STAYS}: {DEFECT}"
            self._defects.note(repr(error), error)
        else:
            self._defects.note(None)
        self._loop.step()

    def status(self) -> RolloutsStatus:
        """The loop's, and what keeps objects from being followed."""
        status = self._loop.status()
        return status.model_copy(update={"problem": "; ".join(filter(None, (status.problem, self._problem)))})

    def _follow(self) -> str:
        """What cannot be read of them, in words; "": nothing."""
        if self._there is None or not self._kept.stands():
            present, faults, orders = self._present(), list[str](), list[Drain]()
            objects = list(self._kept.read())
            for each in objects:
                drain, fault = order_of(each)
                if drain is None:
                    faults.append(fault)
                else:
                    orders.append(drain.model_copy(update={"machine": present.get(drain.machine, drain.machine)}))
            self._drains.take(orders)
            self._there = frozenset(present.get(each.name, each.name) for each in objects)
            self._faults = first_few(sorted(faults))
        self._end_gone(self._there)
        return self._faults

    def _end_gone(self, there: frozenset[str]) -> None:
        for drain in self._drains.standing():
            if drain.machine not in there and drain.since_ms < self._kept.at_ms - LATE_MS:
                over = {"end": "taken-off", "ended_ms": self._clock.now_ms(), "words": GONE}
                self._drains.take([drain.model_copy(update=over)])
                fields = {"machine": drain.machine, "boot": drain.boot, "order": drain.id}
                log.info("%s of %s has ended: %s", drain.what, drain.machine, GONE, extra={"fields": fields})


def ordering(
    config: Config, loop: Rollouts, drains: SqliteDrains, publisher: SnapshotPublisher, clock: Clock
) -> Rollouts:
    """The loop, with what follows orders of other replicas, where `inventory_kubernetes.orders` has it so."""
    place = config.inventory_kubernetes
    if place is None or place.orders is None:
        return loop

    def present() -> Mapping[str, str]:
        published = publisher.published
        return present_names(published.inventory) if published is not None else {}

    return AndOrders(loop, KeptResources(config.data, place.namespace, ORDERS), drains, present, clock)
