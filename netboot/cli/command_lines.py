"""Machines whose kernel would not get all of its command line, for `netboot config check`.

They alone wait (`netboot.lifecycle.decide`); this is no fault that keeps an inventory from being in force, for how long
a line is depends on the image that a channel points to at the moment.
"""

import time
from collections.abc import Iterator

from images.values.strict import Fault
from netboot.config import Config
from netboot.lifecycle.publish import SiteFacts, compose
from netboot.lifecycle.published import View
from netboot.machines.declared import items_of
from netboot.machines.values import Inventory, Machine
from netboot.stores.image_repository import open_image_repository
from netboot.stores.inventory import declarations_of


def faults(config: Config, inventory: Inventory) -> Iterator[Fault]:
    """One for all machines of a profile, class and rack, at the first of them. Where a channel has no image that can be
    used, as where inventories are checked without a store, the image's own arguments are not counted."""
    facts = SiteFacts.of(config)
    view = View.of(compose(inventory, open_image_repository(config), facts, int(time.time() * 1000)))
    found: dict[tuple[str | None, ...], list[tuple[Machine, tuple[str, ...]]]] = {}
    for machine in inventory.machines:
        image = view.snapshot.images.get(view.snapshot.channels[view.profiles[machine.profile].channel] or "")
        if why := view.cut(machine, image):
            alike = (machine.profile, machine.class_name, machine.rack)
            found.setdefault(alike, []).append((machine, why))
    if not found:
        return
    declared = (item for document in declarations_of(config).documents()[0] for item in items_of(document))
    items = {item.name: item for item in declared if item.kind == "machine"}
    for machines in found.values():
        first, why = machines[0]
        others = len(machines) - 1
        more = f", and {others} more of its profile, class and rack" if others else ""
        yield items[first.name].fault(f"machine {first.name}{more} will not boot: {'; '.join(why)}", "profile")
