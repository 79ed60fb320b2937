"""Orders to drain and to reboot that other replicas took are known here, too: the process `resources` has written what
objects say of them to `data/resources/orders.json`.

Where that cannot be read, what stands stands.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

from images.values.faults import first_few
from images.values.strict import FaultsError
from netboot.config import Config
from netboot.controllers.loop import Rollouts
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.order_objects import KIND, OrderObject, kept_object
from netboot.logs import Trouble
from netboot.machines.resources import Resource
from netboot.status import DEFECT
from netboot.status.controllers import RolloutsStatus
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


class AndOrders:
    """A loop, with this. `seen_ms()`: when the API server last said that they are as they are kept; 0: that is not
    known; raises CannotTellError."""

    def __init__(self, loop: Rollouts, kept: Kept, seen_ms: Callable[[], int], drains: SharedDrains) -> None:
        self._loop, self._kept, self._seen_ms, self._drains = loop, kept, seen_ms, drains
        self._objects: list[OrderObject] | None = None
        """As they were read last; None: not yet."""
        self._due: bool = True
        """Whether they are to be taken over, still or again."""
        self._as_of_ms = -1
        self._faults = self._problem = ""
        self._defects = Trouble(log, "orders are not followed, by a defect", "orders are followed again")

    def step(self) -> None:
        """Take over what there is, then go on."""
        try:
            self._follow()
            self._problem = self._faults
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

    def _follow(self) -> None:
        seen_ms = self._seen_ms()  # before what it is of: that may only be newer
        if self._objects is None or not self._kept.stands():
            self._objects, self._due = None, True
            self._objects, self._faults = _read(self._kept.read())
        as_of_ms = max(self._kept.at_ms, seen_ms)
        if not self._due and as_of_ms == self._as_of_ms:
            return
        gone, self._due = self._drains.follow(self._objects if self._due else None, as_of_ms)
        self._as_of_ms = as_of_ms
        for drain in gone:
            fields = {"machine": drain.machine, "boot": drain.boot, "order": drain.id}
            log.info("%s of %s has ended: %s", drain.what, drain.machine, GONE, extra={"fields": fields})


def _read(resources: Iterable[Resource]) -> tuple[list[OrderObject], str]:
    """Those that are orders, and what cannot be read of the others, in words; "": there are none."""
    objects = sorted(map(kept_object, resources), key=lambda each: each.name)
    faults = [each.fault for each in objects if each.drain is None]
    orders = [each for each in objects if each.drain is not None]
    ids = Counter(each.drain.id for each in orders if each.drain is not None)
    twice = [each for each in orders if each.drain is not None and ids[each.drain.id] > 1]
    faults += [f"{KIND}/{each.name}: spec.id: another object has the same" for each in twice]
    return [each for each in orders if each not in twice], first_few(sorted(faults))


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
