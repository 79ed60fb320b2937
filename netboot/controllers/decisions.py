"""What snapshots said of machines: their classes, and what was decided for a boot, while the snapshot is at hand."""

import weakref
from collections.abc import Callable, Mapping

from netboot.lifecycle.decided import Decided, Inputs, decided
from netboot.lifecycle.published import View
from netboot.lifecycle.snapshot import Snapshot

AT_HAND = 2
"""Snapshots: the one in force, and the one before, for boots whose script was served by that."""


class _Said:
    """By one snapshot. No reference to it is held: whoever lets go of the last one frees 50,000 machines, which is not
    to be done at the lowest priority; `SnapshotPublisher` holds those at hand."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = weakref.ref(snapshot)
        self.classes = {each.name: each.class_name for each in snapshot.inventory.machines if each.class_name}

    def decided(self, wanted: Mapping[str, str]) -> list[Decided]:
        """What was decided for these by this snapshot: digest → machine."""
        snapshot = self.snapshot()
        if snapshot is None:
            return []
        names = set(wanted.values())
        machines = tuple(each for each in snapshot.inventory.machines if each.name in names)
        of_these = {"inventory": snapshot.inventory.model_copy(update={"machines": machines})}
        view = View.of(snapshot.model_copy(update=of_these))  # an index of 50,000 would be made for a few
        inputs = Inputs(view)
        found = filter(None, (decided(view, inputs, machine) for machine in machines))
        return [each for each in found if each.digest in wanted]


class Snapshots:
    """`published()`: the snapshot that was published last; None: nothing was yet."""

    def __init__(self, published: Callable[[], Snapshot | None]) -> None:
        self._published = published
        self._said: list[_Said] = []

    def look(self) -> None:
        """Notice that another snapshot was published."""
        snapshot = self._published()
        if snapshot is not None and (not self._said or snapshot is not self._said[0].snapshot()):
            self._said = [_Said(snapshot), *self._said][:AT_HAND]

    def hardware(self, machine: str) -> str:
        """The class of a machine; "": it has none."""
        return self._said[0].classes.get(machine, "") if self._said else ""

    def decided(self, wanted: Mapping[str, str]) -> list[Decided]:
        """What was decided for these: digest → machine. One whose inputs have changed since is not in it."""
        left, found = dict(wanted), list[Decided]()
        for said in self._said:
            if left:
                found += (told := said.decided(left))
                left = {digest: left[digest] for digest in left.keys() - {each.digest for each in told}}
        return found
