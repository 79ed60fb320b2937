"""What came of nodes' own reports, and how old it is: counted from when we received it, by clocks that stand still
while we cannot see. So one outage makes nobody stale.

A class's clock goes on while the API server is followed and half of its Nodes that ever reported have done so lately;
a class with few Nodes is judged with its whole cluster (`netboot.lifecycle.outage`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from netboot.join.ports import NodeView
from netboot.lifecycle.outage import Outages
from netboot.lifecycle.seen_time import SeenTime

STALE_MS = 30 * 60_000
"""A node says how it is every ten to twelve minutes at least: after two that are missing nothing is known any more."""
LATELY_MS = 15 * 60_000
"""Within which one that works has said it again, by our clock, which nobody sets."""


@dataclass(slots=True)
class Entry:
    """A Node of a machine of ours. `place`: whose clock counts for it; `counts`: what it says now is under a
    certificate of the current boot; None: not looked up yet. `received`: what its clock showed when the last that
    counts came; None: nothing has."""

    node: NodeView
    machine: str
    place: str
    round: int
    counts: bool | None = None
    received: int | None = None
    received_up: int = 0
    certificates: frozenset[str] = frozenset()
    look_at: float = 0.0
    looks: int = 0
    said: str = ""
    """What was last said of its gate in the log."""


@dataclass(slots=True)
class Reports:
    """All Nodes of one cluster, and the clocks of their classes."""

    entries: dict[str, Entry] = field(default_factory=dict)
    _clocks: SeenTime | None = None

    def take(self, node: NodeView, machine: str, place: str, rounds: int) -> Entry:
        """A Node as it is now; another uid is another Node, of which nothing is known yet."""
        before = self.entries.get(node.name)
        if before is None or before.node.uid != node.uid:
            entry = self.entries[node.name] = Entry(node, machine, place, rounds)
            return entry
        if node.health != before.node.health:
            before.counts, before.look_at, before.looks = None, 0.0, 0
        before.node, before.machine, before.place, before.round = node, machine, place, rounds
        return before

    def forget(self, rounds: int) -> None:
        """Nodes that a whole round did not show are gone."""
        self.entries = {name: entry for name, entry in self.entries.items() if entry.round >= rounds}

    def pass_time(self, up_ms: int, *, followed: bool) -> None:
        """Clocks go on where it can be seen."""
        if self._clocks is None:
            self._clocks = SeenTime({}, up_ms)
        outages, places = Outages(), set[str]()
        for name, entry in self.entries.items():
            if entry.received is not None:
                places.add(entry.place)
                outages.put(name, entry.place, gone=up_ms - entry.received_up > LATELY_MS)
        self._clocks.look(places - outages.standing_still() if followed else (), up_ms)

    def receive(self, entry: Entry, certificates: frozenset[str], up_ms: int) -> None:
        """What a Node says now was compared with the certificates of its boot."""
        entry.certificates = certificates
        said = entry.node.health
        entry.counts = said is not None and said.credential in certificates
        if entry.counts:
            entry.received, entry.received_up = self._shows(entry.place), up_ms

    def is_stale(self, entry: Entry) -> bool:
        """Whether the last that counts is too old."""
        return entry.received is not None and self._shows(entry.place) - entry.received >= STALE_MS

    def _shows(self, place: str) -> int:
        clocks: Mapping[str, int] = self._clocks.values if self._clocks is not None else {}
        return clocks.get(place, 0)
