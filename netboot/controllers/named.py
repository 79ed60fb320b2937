"""Which machines there are, as the projection tells the state: those that left are forgotten in time, and what is
known of one that was renamed is its own by the name that it has now."""

import logging
from collections.abc import Callable, Mapping

from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.events import AnyRecord, DiscoveryRecord, HardwareRecord
from netboot.lifecycle.ports import Projection
from netboot.machines.difference import names
from netboot.machines.former import present_names
from netboot.machines.values import Inventory

log = logging.getLogger(__name__)

DECLARE_SECONDS = 600.0
"""How often the state is told which machines the inventory has; at once where that changed."""


class NamedMachines:
    """`inventory()`: the one in force; None: nothing is yet."""

    def __init__(
        self, projection: Projection, inventory: Callable[[], Inventory | None], monotonic: Callable[[], float]
    ) -> None:
        self._projection, self._inventory, self._monotonic = projection, inventory, monotonic
        self._declared: Inventory | None = None
        self._declared_at: float | None = None
        self._named: Inventory | None = None
        self._present: Mapping[str, str] = {}

    def rename(self) -> None:
        """Before anything is taken: what is in force may have other names than at the last look.

        Raises:
            netboot.lifecycle.errors.StateUnavailableError: the disk refuses.
        """
        inventory = self._inventory()
        if inventory is None or inventory is self._named:
            return
        present = present_names(inventory)
        if present:
            self._projection.rename(present)
        self._named, self._present = inventory, present

    def present(self, record: AnyRecord) -> AnyRecord:
        """The record, by the name that its machine has now."""
        if isinstance(record, DiscoveryRecord | HardwareRecord) or record.machine not in self._present:
            return record
        return record.model_copy(update={"machine": self._present[record.machine]})

    def declare(self) -> None:
        """Tell the state which there are, where that changed or was told long ago."""
        inventory, now = self._inventory(), self._monotonic()
        passed = now - self._declared_at if self._declared_at is not None else 0.0
        if inventory is None or (inventory is self._declared and passed < DECLARE_SECONDS):
            return
        try:
            self.rename()  # who has another name has not left
            forgotten = self._projection.declare(names(inventory), int(passed))
        except CannotTellError:
            return  # each journal has its words
        self._declared, self._declared_at = inventory, now
        if forgotten:
            log.info("projection: boots of %d machines that the inventory no longer has are forgotten", forgotten)
