"""Objects of an inventory, and holds beside them: each is followed by itself, so that what is wrong with one keeps none
of the other; what they say of themselves is one."""

from netboot.controllers.resources import ResourcesController
from netboot.status.resources import ResourcesStatus


class AndHolds:
    """A controller of the two."""

    def __init__(self, inventory: ResourcesController, holds: ResourcesController) -> None:
        self._inventory, self._holds = inventory, holds

    def start(self) -> None:
        self._inventory.start()
        self._holds.start()

    def stop(self) -> None:
        self._inventory.stop()
        self._holds.stop()

    def status(self) -> ResourcesStatus:
        """For `/readyz` and metrics: of the two, what is older, and what is wrong with either."""
        inventory, holds = self._inventory.status(), self._holds.status()
        told = [] if inventory.ok else [inventory.message]
        told += [] if holds.ok else [f"holds: {holds.message}"]
        ages = [each.age_seconds for each in (inventory, holds)]
        known = [age for age in ages if age is not None]
        return ResourcesStatus(
            at_ms=inventory.at_ms,
            ok=not told,
            message="; ".join(told) or inventory.message,
            remedy=holds.remedy if inventory.ok else inventory.remedy,
            objects={**inventory.objects, **holds.objects},
            age_seconds=max(known) if len(known) == len(ages) else None,
            unavailable=inventory.unavailable + holds.unavailable,
        )
