"""What snapshots said of machines: their classes, and what was decided for a boot, while the snapshot is at hand."""

from collections.abc import Callable, Iterable

from netboot.lifecycle.decide import View
from netboot.lifecycle.decided import Decided, Inputs, decided
from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.values import Machine

AT_HAND = 2
"""Snapshots: the one in force, and the one before, for boots whose script was served by that."""


class _Said:
    """By one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.machines = {each.name: each for each in snapshot.inventory.machines}
        self.classes = {name: each.class_name for name, each in self.machines.items() if each.class_name}
        self._view: View | None = None

    def decided(self, machine: Machine) -> Decided | None:
        if self._view is None:
            self._view = View.of(self.snapshot)
            self._inputs = Inputs(self._view)
        return decided(self._view, self._inputs, machine)


class Snapshots:
    """`published()`: the snapshot that was published last; None: nothing was yet."""

    def __init__(self, published: Callable[[], Snapshot | None]) -> None:
        self._published = published
        self._said: list[_Said] = []

    def look(self) -> None:
        """Notice that another snapshot was published."""
        snapshot = self._published()
        if snapshot is not None and (not self._said or snapshot is not self._said[0].snapshot):
            self._said = [_Said(snapshot), *self._said][:AT_HAND]

    def hardware(self, machine: str) -> str:
        """The class of a machine; "": it has none."""
        return (self._said[0].classes.get(machine) or "") if self._said else ""

    def decided(self, wanted: Iterable[tuple[str, str]]) -> list[Decided]:
        """What was decided for these: machine and digest. One whose inputs have changed since is not in it."""
        found = []
        for name, digest in wanted:
            known = (each.decided(each.machines[name]) for each in self._said if name in each.machines)
            found += [each for each in known if each is not None and each.digest == digest][:1]
        return found
