"""How far orders are, for their objects: what the node collectors of this replica say, of those that are carried out
here."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from images.values.strict import FaultsError
from netboot.clock import rfc3339
from netboot.lifecycle.drains import DrainsStatus, State
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.order_objects import LONGEST_WORDS, OrderStatus, clean, kept_object
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

    def __init__(self, data: Path, namespace: str, clusters: Iterable[str], live: LiveView) -> None:
        self._kept = KeptResources(data, namespace, ORDERS)
        self._status, self._clusters = StatusFolder(data / "status"), tuple(clusters)
        self._objects: Mapping[str, tuple[str, str]] = {}
        """Name → uid of the object, and the id of its order."""
        self._live, self._last = live, OrdersSaid({})

    def read(self) -> OrdersSaid:
        """The very same value while it is. Of a cluster who leads says it: of an order that nobody has to do with any
        more, or not yet, nothing, in the place of what was said of the one before. Raises CannotTellError."""
        if not self._kept.stands():
            try:
                found = [kept_object(each) for each in self._kept.read()]
            except FaultsError as error:
                raise CannotTellError(str(error)) from None
            self._objects = {each.name: (each.uid, each.drain.id) for each in found if each.drain is not None}
        read = {cluster: self._status.read(f"drains-{cluster}", DrainsStatus) for cluster in self._clusters}
        led = {cluster: status.drains for cluster, status in read.items() if status is not None and status.leads}
        said = {state.id: state for drains in led.values() for state in drains.values()}
        index = self._live.view().index
        orders = {
            name: (uid, status_of(said.get(order)))
            for name, (uid, order) in self._objects.items()
            if (machine := index.named(name) or index.formerly(name)) is not None and machine.cluster in led
        }
        if orders != self._last.orders:
            self._last = OrdersSaid(orders)
        return self._last
