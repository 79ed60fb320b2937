"""Which machines of the inventory could not boot now, for `/readyz`: by the very decision that is served."""

from collections import Counter
from threading import Lock
from typing import NamedTuple

from images.values.faults import first_few
from netboot.lifecycle.decide import Boot, Decision, decide_machine
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.published import View
from netboot.machines.values import Machine
from netboot.readiness import Detail
from netboot.stores.live import LiveView

_REMEDIES = {
    "no-image": "set an image: `netboot channel set CHANNEL IMAGE`",
    "image-unusable": "`netboot channel list` says why; set the channel to another image, or put that one right",
}


class Bootable(NamedTuple):
    """`nobody`: there are machines that may boot, their images are set, and none of these can be used."""

    detail: Detail
    nobody: bool


def bootable(view: View) -> Bootable:
    """What stands in `/readyz`. Machines that are disabled are not meant to boot."""
    decided: dict[tuple[object, ...], Decision] = {}
    stuck: dict[str, Decision] = {}
    count = 0
    for machine in view.snapshot.inventory.machines:
        if machine.enabled:
            count += 1
            alike = _alike(view, machine)
            if alike not in decided:
                decided[alike] = decide_machine(view, machine)
            if not isinstance(decided[alike], Boot):
                stuck[machine.name] = decided[alike]
    if not stuck:
        return Bootable(
            Detail.model_validate({"ok": True, "message": f"all {count} can boot", "cannot_boot": 0}), False
        )
    reasons = Counter(getattr(decision, "reason", "unknown") for decision in stuck.values())
    reason = reasons.most_common(1)[0][0]
    first = next(name for name, decision in stuck.items() if getattr(decision, "reason", "unknown") == reason)
    why = stuck[first].because[-1]
    words = f"{len(stuck)} of {count} machines cannot boot ({first_few(list(stuck))}); {first}: {why}"
    remedy = _REMEDIES.get(reason, f"`netboot explain {first}` says what each needs")
    said = {"ok": False, "message": words, "remedy": remedy, "cannot_boot": len(stuck)}
    return Bootable(Detail.model_validate(said), len(stuck) == count and reasons["no-image"] == 0)


def _alike(view: View, machine: Machine) -> tuple[object, ...]:
    """Machines that share it share whether they can boot."""
    assigned = view.snapshot.assigned.get(machine.name)
    image = assigned.image if assigned is not None else None
    return machine.profile, machine.class_name, machine.rack, machine.architecture, image


class Bootables:
    """The same, worked out once for each snapshot."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: tuple[View, Bootable] | None = None

    def now(self, live: LiveView, *, fetches: bool) -> Bootable:
        """For what is in force. `fetches`: an image is on its way, or may be: then it is ready, however long."""
        try:
            said = self.of(live.view())
        except CannotTellError:
            return Bootable(Detail(ok=False, message="not known yet", remedy="see `snapshot`"), nobody=False)
        return said._replace(nobody=said.nobody and not fetches)

    def of(self, view: View) -> Bootable:
        """For this view."""
        with self._lock:
            if self._last is None or self._last[0] is not view:
                self._last = view, bootable(view)
            return self._last[1]
