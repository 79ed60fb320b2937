"""Orders to drain and to reboot, rollouts, and where channels point, of other replicas are known here, too: the process
`resources` has written what objects say of them to `orders.json` and `rollouts.json`.

Where one of these cannot be read, what is known of it stays as it was.
"""

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from images.values.faults import first_few
from netboot.clock import SystemClock
from netboot.config import Config
from netboot.controllers.acting import Acting
from netboot.controllers.loop import Rollouts
from netboot.lifecycle import order_objects, rollout_objects
from netboot.lifecycle.order_objects import OrderObject
from netboot.lifecycle.rollout_objects import RolloutObject
from netboot.machines.resources import Resource
from netboot.status.resources import Followed
from netboot.stores.drains import SqliteDrains
from netboot.stores.resources import FOLDER, ORDERS, ROLLOUTS, KeptResources
from netboot.stores.rollouts import SqliteRollouts
from netboot.stores.shared_drains import SharedDrains
from netboot.stores.shared_rollouts import SharedRollouts
from netboot.stores.status import StatusFolder

T = TypeVar("T")
STAYS = "cannot be told, and stays as it was"


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


class AndShared(Acting, Generic[T]):
    """A loop, with this. `read`: objects as they were kept; `follow(objects, as_of_ms)`: takes them over, as they were
    at that moment at the earliest, and tells which are not believed; `seen_ms()`: when the API server last said that
    they are as they are kept; 0: that is not known; raises CannotTellError."""

    def __init__(
        self,
        loop: Rollouts,
        kinds: str,
        kept: Kept,
        read: Callable[[Iterable[Resource]], list[T]],
        follow: Callable[[list[T], int], list[str]],
        seen_ms: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(loop, kinds, f"what other replicas did about {kinds} {STAYS}")
        self._kept, self._read, self._follow = kept, read, follow
        self._seen_ms, self._now_ms = seen_ms, now_ms
        self._objects: list[T] | None = None
        """As they were read last; None: not yet."""
        self._as_of_ms, self._faults = -1, list[str]()

    def settle(self) -> str:
        seen_ms = self._seen_ms()  # before what it is of: that may only be newer
        if self._objects is None or not self._kept.stands():
            self._objects, self._as_of_ms = None, -1
            self._objects = self._read(self._kept.read())
        # with a clock that was set back what was written before is of no moment
        at_ms = self._kept.at_ms if self._kept.at_ms <= self._now_ms() else 0
        as_of_ms = max(at_ms, seen_ms)
        # with time that is believed, too, which may have been too early before; what could not be done is tried again
        if as_of_ms != self._as_of_ms or self._faults:
            self._faults = self._follow(self._objects, as_of_ms)
            self._as_of_ms = as_of_ms
        return first_few(self._faults)


def orders_of(resources: Iterable[Resource]) -> list[OrderObject]:
    """As they were kept."""
    return order_objects.apart(map(order_objects.kept_object, resources))


def rollouts_of(resources: Iterable[Resource]) -> list[RolloutObject]:
    """As they were kept."""
    return [rollout_objects.kept_object(each) for each in resources]


def sharing(config: Config, loop: Rollouts, drains: SqliteDrains, rollouts: SqliteRollouts) -> Rollouts:
    """The loop, with what follows orders and rollouts of other replicas, where they are shared."""
    place = config.inventory_kubernetes
    if place is None or not isinstance(drains, SharedDrains) or not isinstance(rollouts, SharedRollouts):
        return loop
    folder, namespace, now_ms = StatusFolder(config.data / FOLDER), place.namespace, SystemClock().now_ms

    def seen_ms(file: str) -> Callable[[], int]:
        def seen() -> int:
            said = folder.read(f"followed_{file}", Followed)
            return max(said.seen_ms, said.came_ms) if said is not None else 0

        return seen

    def kept(file: str) -> KeptResources:
        return KeptResources(config.data, namespace, file)

    following = AndShared(loop, "rollouts", kept(ROLLOUTS), rollouts_of, rollouts.follow, seen_ms(ROLLOUTS), now_ms)
    return AndShared(following, "orders", kept(ORDERS), orders_of, drains.follow, seen_ms(ORDERS), now_ms)
