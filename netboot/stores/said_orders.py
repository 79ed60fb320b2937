"""How far orders are, for their objects: what the node collectors of this replica say, of those that are carried out
here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from images.values.strict import FaultsError
from netboot.clock import rfc3339
from netboot.lifecycle.drains import DrainsStatus, State
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.order_objects import LONGEST_WORDS, OrderObject, OrderStatus, clean, kept_object
from netboot.stores.live import LiveView
from netboot.stores.resources import ORDERS, KeptResources
from netboot.stores.status import StatusFolder


class OrdersSaid(NamedTuple):
    """Name → the uid of the object, and what it is to say."""

    orders: Mapping[str, tuple[str, Mapping[str, Any]]]

    def statuses(self) -> dict[str, tuple[str, Mapping[str, Any]]]:
        return dict(self.orders)


def status_of(state: State | None) -> dict[str, Any]:
    """As it is written into the object; None: nothing is said of its order."""
    if state is None:
        return OrderStatus().model_dump(mode="json")
    since, message = rfc3339(state.since_ms, "seconds"), clean(state.words, LONGEST_WORDS)
    return OrderStatus(id=state.id, state=state.state, message=message, since=since).model_dump(mode="json")


class SaidOrders:
    """Of one site. `clusters`: whose node collectors are asked; `live`: whose the machines are."""

    def __init__(
        self, data: Path, namespace: str, clusters: Iterable[str], live: LiveView, now_ms: Callable[[], int]
    ) -> None:
        self._kept = KeptResources(data, namespace, ORDERS)
        self._status, self._clusters = StatusFolder(data / "status"), tuple(clusters)
        self._objects: Sequence[OrderObject] = ()
        self._live, self._now_ms, self._last = live, now_ms, OrdersSaid({})

    def read(self) -> OrdersSaid:
        """The very same value while it is. Of a cluster who leads says it, first of what stands: of an order that
        nobody has to do with any more, or not yet, nothing, where anything is said of it, or of the one before. Raises
        CannotTellError."""
        if not self._kept.stands():
            try:
                found = [kept_object(each) for each in self._kept.read()]
            except FaultsError as error:
                raise CannotTellError(str(error)) from None
            self._objects = found
        read = {cluster: self._status.read(f"drains-{cluster}", DrainsStatus) for cluster in self._clusters}
        now_ms = self._now_ms()
        led = {name: said for name, said in read.items() if said is not None and said.leads and said.fresh(now_ms)}
        states = {state.id: state for said in led.values() for state in said.drains.values()}
        index = self._live.view().index
        orders: dict[str, tuple[str, Mapping[str, Any]]] = {}
        for each in sorted(self._objects, key=lambda each: each.drain is None or each.drain.end is not None):
            machine = index.named(each.name) or index.formerly(each.name)
            state = states.get(each.drain.id) if each.drain is not None else None
            said = led.get(machine.cluster or "") if machine is not None else None
            # who begins to lead, or cannot go on, takes back nothing of what was said before
            if said is not None and (state is not None or (each.state is not None and not said.problem)):
                orders[each.name] = each.uid, status_of(state)
        if orders != self._last.orders:
            self._last = OrdersSaid(orders)
        return self._last
