"""Holds that objects declare are kept with all other holds, and taken off when their objects were deleted: the process
`resources` has written what there is to `data/resources/holds.json`.

Where that cannot be read, and where the inventory in force is not known, what is held stays held.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from netboot.config import Config
from netboot.controllers.acting import Acting
from netboot.controllers.audited import audit
from netboot.controllers.loop import Rollouts
from netboot.controllers.snapshot_publisher import SnapshotPublisher
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.hold_steps import Machines, Place, Step, said, steps, unaccounted
from netboot.lifecycle.holds import OBJECTS, HoldObject, HoldSaid, HoldsSaid, object_of, shown, who_of
from netboot.lifecycle.intents import Change, IntentStore, PutOn
from netboot.lifecycle.ports import Clock
from netboot.machines.former import present_names
from netboot.machines.resources import Resource
from netboot.machines.values import Inventory
from netboot.stores.holds import SaidHolds
from netboot.stores.inventory import holds_in
from netboot.stores.resources import HOLDS, KeptResources

log = logging.getLogger(__name__)

MOST_AT_ONCE = 100
"""Orders of one step, each of which waits for the disk: the loop has more to do, and is watched."""
MOST_TOLD = 3
STAYS = "what objects hold cannot be told, and stays as it was"


class Kept(Protocol):
    """What there is: `netboot.stores.resources.KeptResources`."""

    uid: str
    """Of the namespace and the definition that it is of; "": not known."""

    def read(self) -> Iterable[Resource]:
        """Raises FaultsError: it cannot be told."""
        ...

    def stands(self) -> bool:
        """Whether it is what was read last."""
        ...


class AndHolds(Acting):
    """A loop, with this. `inventory()`: what is in force, None: nothing yet; `tell`: write down what became of objects,
    `before`: what an earlier process wrote, None: nothing."""

    def __init__(
        self,
        loop: Rollouts,
        namespace: str,
        kept: Kept,
        intents: IntentStore,
        inventory: Callable[[], Inventory | None],
        tell: Callable[[HoldsSaid], bool],
        before: HoldsSaid | None,
        clock: Clock,
    ) -> None:
        super().__init__(loop, "Holds", STAYS)
        self._namespace, self._kept, self._intents = namespace, kept, intents
        self._inventory, self._tell, self._clock = inventory, tell, clock
        self._said: Mapping[str, HoldSaid] = before.holds if before is not None else {}
        self._told = before is not None
        self._objects: list[HoldObject] | None = None
        self._known: tuple[Inventory, Machines] | None = None

    def settle(self) -> str:
        """What stays held although its object is not there; "": nothing."""
        machines = self._machines()
        if machines is None:
            return ""
        if self._objects is None or not self._kept.stands():
            self._objects = [object_of(each) for each in self._kept.read()]
        now_ms, place = self._clock.now_ms(), Place(self._namespace, self._kept.uid)
        objects, standing = {each.name: each for each in self._objects}, self._intents.all(now_ms)
        due = steps(self._objects, standing, place, machines, self._said, now_ms)
        for step in due[:MOST_AT_ONCE]:
            each = objects.get(step.name)
            puts = isinstance(step.order, PutOn) and each is not None
            change = self._intents.order(step.machine, step.order, who_of(each) if puts and each else OBJECTS, now_ms)
            if change.act:
                self._audited(step, change, each)
        if len(due) <= MOST_AT_ONCE:
            self._say(said(self._objects, standing, place, machines, self._said, now_ms))
        stay = unaccounted(self._objects, standing, place, due)
        return "; ".join(stay[:MOST_TOLD]) + (f"; and {more} more" if (more := len(stay) - MOST_TOLD) > 0 else "")

    def _machines(self) -> Machines | None:
        inventory = self._inventory()
        if inventory is None:
            return None
        if self._known is None or self._known[0] is not inventory:
            names = frozenset(machine.name for machine in inventory.machines)
            self._known = inventory, Machines(names, present_names(inventory))
        return self._known[1]

    def _audited(self, step: Step, change: Change, each: HoldObject | None) -> None:
        """What came or went by an object is an act of Kubernetes'; of one that is gone, by what was known of it."""
        before = self._said.get(step.name)
        uid = step.uid or (before.uid if before is not None else "")
        by = each.hold.by if each is not None and each.hold is not None else before.by if before is not None else ""
        audit(
            "hold" if isinstance(step.order, PutOn) else "unhold",
            operator=OBJECTS,
            machine=step.machine,
            reason=step.order.reason,
            did=change.act,
            object=shown(step.name),
            namespace=self._namespace,
            uid=uid,
            by=by or "",
            until_ms=step.order.until_ms if isinstance(step.order, PutOn) else None,
        )

    def _say(self, now: Mapping[str, HoldSaid]) -> None:
        for name, each in now.items():
            was = self._said.get(name)
            if each.why in ("Malformed", "NoSuchMachine") and (was is None or was.message != each.message):
                log.warning("%s: %s", shown(name), each.message, extra={"fields": {"namespace": self._namespace}})
        if now != self._said or not self._told:
            self._said = now
            self._told = self._tell(HoldsSaid(holds=now))


def holding(
    config: Config, loop: Rollouts, intents: IntentStore, publisher: SnapshotPublisher, clock: Clock
) -> Rollouts:
    """The loop, with what follows holds that objects declare, where `inventory_kubernetes.holds` has it so."""
    if (namespace := holds_in(config)) is None:
        return loop
    told = SaidHolds(config.data)
    try:
        before = told.read()
    except CannotTellError:
        before = None
    kept = KeptResources(config.data, namespace, HOLDS)

    def in_force() -> Inventory | None:
        published = publisher.published
        return published.inventory if published is not None else None

    return AndHolds(loop, namespace, kept, intents, in_force, told.write, before, clock)
