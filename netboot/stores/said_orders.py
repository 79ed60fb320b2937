"""How far orders are, for their objects: what the node collectors of this replica say, of those that are carried out
here."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from images.values.strict import FaultsError
from netboot.clock import rfc3339
from netboot.lifecycle.drains import DrainsStatus, State
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.order_objects import OrderStatus, order_of
from netboot.stores.resources import ORDERS, KeptResources
from netboot.stores.status import StatusFolder


class OrdersSaid(NamedTuple):
    """Machine → the uid of its object, and how far its order is."""

    orders: Mapping[str, tuple[str, State]]

    def statuses(self) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """Name → the uid of the object, and what it is to say."""
        return {name: (uid, status_of(state)) for name, (uid, state) in self.orders.items()}


def status_of(state: State) -> dict[str, Any]:
    """As it is written into the object."""
    since = rfc3339(state.since_ms, "seconds")
    said = OrderStatus(id=state.id, state=state.state, message=state.words[:1000], since=since)
    return said.model_dump(mode="json")


class SaidOrders:
    """Of one site. `clusters`: whose node collectors are asked."""

    def __init__(self, data: Path, namespace: str, clusters: Iterable[str]) -> None:
        self._kept = KeptResources(data, namespace, ORDERS)
        self._status, self._clusters = StatusFolder(data / "status"), tuple(clusters)
        self._objects: Mapping[str, tuple[str, str]] = {}
        """Machine → uid of its object, and the id of the order that stands."""
        self._last = OrdersSaid({})

    def read(self) -> OrdersSaid:
        """The very same value while it is. Raises CannotTellError."""
        if not self._kept.stands():
            try:
                found = [(each, order_of(each)[0]) for each in self._kept.read()]
            except FaultsError as error:
                raise CannotTellError(str(error)) from None
            self._objects = {each.name: (each.uid, drain.id) for each, drain in found if drain is not None}
        said: dict[str, tuple[str, State]] = {}
        for cluster in self._clusters:
            status = self._status.read(f"drains-{cluster}", DrainsStatus)
            for machine, state in status.drains.items() if status is not None else ():
                uid, order = self._objects.get(machine, ("", ""))
                if order == state.id:
                    said[machine] = uid, state
        if said != self._last.orders:
            self._last = OrdersSaid(said)
        return self._last
