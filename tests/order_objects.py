"""Orders as objects in memory, as an API server keeps them: `netboot.lifecycle.order_objects.OrderObjects`."""

import itertools
import threading
from collections.abc import Callable

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.order_objects import OrderObject, OrderSpec

AWAY = "the apiserver 192.0.2.1:6443 could not be reached within 3 s"


class MemoryOrders:
    """`before_write`: what happens between a read and the write that goes by it; `away`: nobody answers."""

    def __init__(self) -> None:
        self._lock, self._versions = threading.RLock(), itertools.count(1)
        self.objects: dict[str, OrderObject] = {}
        self.before_write: Callable[[], None] = lambda: None
        self.away = False

    def _answer(self) -> None:
        if self.away:
            raise ClusterUnavailableError(AWAY)

    def read(self, machine: str) -> OrderObject | None:
        self._answer()
        return self.objects.get(machine)

    def all(self) -> list[OrderObject]:
        self._answer()
        return [self.objects[name] for name in sorted(self.objects)]

    def write(self, machine: str, spec: OrderSpec, before: OrderObject | None) -> OrderObject:
        self._answer()
        self.before_write()
        with self._lock:
            found = self.objects.get(machine)
            if (found.version if found else None) != (before.version if before else None):
                raise ConflictError("409 Conflict: the object has been modified")
            uid = found.uid if found is not None else f"uid-{machine}"
            self.objects[machine] = OrderObject(machine, uid, str(next(self._versions)), spec)
            return self.objects[machine]
