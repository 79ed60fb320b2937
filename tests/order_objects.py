"""Orders as objects in memory, as an API server keeps them: `netboot.lifecycle.order_objects.OrderObjects`."""

import itertools
import threading
from collections.abc import Callable

from netboot.join.errors import ClusterUnavailableError, ConflictError, InvalidError
from netboot.lifecycle.order_objects import KIND, OrderObject, OrderSpec, order_object, spec_of
from netboot.machines.resources import Resource
from netboot.stores.said_orders import status_of

AWAY = "the apiserver 192.0.2.1:6443 could not be reached within 3 s"


class MemoryOrders:
    """`before_write`: what happens between a read and the write that goes by it; `away`: nobody answers; `unheard`:
    what is written is, and no answer comes."""

    def __init__(self) -> None:
        self._lock, self._versions = threading.RLock(), itertools.count(1)
        self.objects: dict[str, OrderObject] = {}
        self.before_write: Callable[[], None] = lambda: None
        self.away = self.unheard = False

    def _answer(self) -> None:
        if self.away:
            raise ClusterUnavailableError(AWAY)

    def read(self, name: str) -> OrderObject | None:
        self._answer()
        return self.objects.get(name)

    def all(self) -> list[OrderObject]:
        self._answer()
        return [self.objects[name] for name in sorted(self.objects)]

    def write(self, name: str, spec: OrderSpec, before: OrderObject | None) -> OrderObject:
        self._answer()
        self.before_write()
        with self._lock:
            found, number = self.objects.get(name), next(self._versions)
            if (found.version if found else None) != (before.version if before else None):
                raise ConflictError("409 Conflict: the object has been modified")
            stays(found, spec)
            uid, generation = (found.uid, found.generation + 1) if found is not None else (f"uid-{name}-{number}", 1)
            said = spec.model_dump(mode="json")
            made = order_object(name, uid, generation, said, f"version-{number}")
            self.objects[name] = made._replace(state=found.state if found is not None else None)
            if self.unheard:
                raise ClusterUnavailableError(AWAY)
            return self.objects[name]

    def kept(self) -> list[Resource]:
        """All, as who follows them keeps them."""
        return [resource(each) for each in self.all() if each.drain is not None]


def stays(before: OrderObject | None, spec: OrderSpec) -> None:
    """What the definition says of one order (`netboot.kube.resources.order_rules`)."""
    if before is not None and before.drain is not None and before.drain.id == spec.id:
        was = spec_of(before.drain)
        if was.model_copy(update={"end": spec.end}) != spec or was.end not in (None, spec.end):
            raise InvalidError("422 Invalid: an order stays as it was given, and ended")


def resource(each: OrderObject) -> Resource:
    assert each.drain is not None
    spec = spec_of(each.drain).model_dump(mode="json", exclude_none=True)
    shown = f"{KIND}/{each.name}"
    status = status_of(each.state) if each.state is not None else None
    return Resource(
        kind=KIND, name=each.name, shown=shown, spec=spec, uid=each.uid, generation=each.generation, status=status
    )
