"""Objects of an inventory, and holds and orders beside them: each is followed by itself, so that what is wrong with one
keeps none of the others; what they say of themselves is one."""

from collections.abc import Mapping

from netboot.controllers.resources import ResourcesController
from netboot.status.resources import ResourcesStatus


class AndActs:
    """A controller of all. `acts`: by what they are called."""

    def __init__(self, inventory: ResourcesController, acts: Mapping[str, ResourcesController]) -> None:
        self._inventory, self._acts = inventory, acts

    def start(self) -> None:
        for each in (self._inventory, *self._acts.values()):
            each.start()

    def stop(self) -> None:
        for each in (self._inventory, *self._acts.values()):
            each.stop()

    def status(self) -> ResourcesStatus:
        """For `/readyz` and metrics: of all, what is oldest, and what is wrong with any."""
        inventory, acts = self._inventory.status(), {name: each.status() for name, each in self._acts.items()}
        said = (inventory, *acts.values())
        told = [] if inventory.ok else [inventory.message]
        told += [f"{name}: {each.message}" for name, each in acts.items() if not each.ok]
        ages = [each.age_seconds for each in said]
        known = [age for age in ages if age is not None]
        return ResourcesStatus(
            at_ms=inventory.at_ms,
            ok=not told,
            message="; ".join(told) or inventory.message,
            remedy=next((each.remedy for each in said if not each.ok), inventory.remedy),
            objects={kind: count for each in said for kind, count in each.objects.items()},
            age_seconds=max(known) if len(known) == len(ages) else None,
            unavailable=sum(each.unavailable for each in said),
        )
