"""What came of nodes' own reports, and how old it is: counted from when we received it, by clocks that stand still
while we cannot see. So one outage makes nobody stale.

A class's clock goes on while the API server is followed and half of its Nodes that ever reported have done so lately;
a class with few Nodes is judged with its whole cluster (`netboot.lifecycle.outage`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from netboot.controllers.nodes.gate import closed_for_silence
from netboot.join.node_said import HealthSaid
from netboot.join.ports import NodeView
from netboot.lifecycle.outage import Outages
from netboot.lifecycle.seen_time import SeenTime

STALE_MS = 30 * 60_000
"""A node says how it is every ten to twelve minutes, and every eighteen at least where its checks take long."""
LATELY_MS = 15 * 60_000
"""Within which at least half of those that work have said it again, by our clock, which nobody sets."""
COUNT_MS = 5_000
"""How often it is counted who has said something lately: that costs as much as there are Nodes."""
MOST_WORDS = 8
"""Kept of one Node, each under another certificate, until they can be told to count."""


@dataclass(slots=True)
class Entry:
    """A Node of a machine of ours. `place`: whose clock counts for it; `counts`: what it says now is under a
    certificate of the current boot; None: not looked up yet. `word`: the last that counts, which holds whatever others
    write over it; None: none has. `received`: what its clock showed when that came."""

    node: NodeView
    machine: str
    place: str
    round: int
    counts: bool | None = None
    word: HealthSaid | None = None
    words: dict[str, HealthSaid] = field(default_factory=dict)
    """What was said since then, by certificate, the latest last."""
    silent: bool = False
    """It was closed for its silence before we saw it first: what it said then does not count."""
    received: int | None = None
    received_up: int = 0
    certificates: frozenset[str] = frozenset()
    boot: str = ""
    """The boot that registered it, as far as that is known."""
    look_at: float = 0.0
    looks: int = 0
    failures: int = 0
    """To change its taints, in a row."""
    again_at: float = 0.0
    opened: tuple[float, ...] = ()
    """When its gate was opened, lately."""
    said: str = ""
    """What was last said of its gate in the log."""

    def judged(self, node: NodeView) -> NodeView:
        """This view of it, with the word that counts in the place of what stands there."""
        return node if self.word is None else node._replace(health=self.word)

    def failed(self) -> str:
        """The boot under whose certificate it says that a check failed; "": it does not."""
        return self.boot if self.word is not None and self.word.status == "False" else ""

    def hear(self, said: HealthSaid) -> None:
        """It says something else now."""
        self.words.pop(said.credential, None)
        self.words[said.credential] = said
        if len(self.words) > MOST_WORDS:
            del self.words[next(iter(self.words))]


@dataclass(slots=True)
class Reports:
    """All Nodes of one cluster, and the clocks of their classes."""

    entries: dict[str, Entry] = field(default_factory=dict)
    _clocks: SeenTime | None = None
    _going: Collection[str] = ()
    """Classes whose clocks go on, as it was counted last."""
    _counted_up: int | None = None

    def take(self, node: NodeView, machine: str, place: str, rounds: int) -> Entry:
        """A Node as it is now; another uid is another Node, of which nothing is known yet."""
        entry = self.entries.get(node.name)
        if entry is None or entry.node.uid != node.uid:
            silent = closed_for_silence(node.taints)
            entry = self.entries[node.name] = Entry(node, machine, place, rounds, silent=silent)
            if node.health is not None and not silent:
                entry.hear(node.health)
            return entry
        if node.health != entry.node.health:
            entry.counts, entry.look_at, entry.looks = None, 0.0, 0
            if node.health is not None:
                entry.hear(node.health)
        if entry.received is not None:  # as long ago by the clock of its class of now as by that of before
            entry.received += self._shows(place) - self._shows(entry.place)
        entry.node, entry.machine, entry.place, entry.round = node, machine, place, rounds
        return entry

    def forget(self, rounds: int) -> None:
        """Nodes that a whole round did not show are gone."""
        self.entries = {name: entry for name, entry in self.entries.items() if entry.round >= rounds}

    def pass_time(self, up_ms: int, *, followed: bool) -> None:
        """Clocks go on where it can be seen."""
        if self._clocks is None:
            self._clocks = SeenTime({}, up_ms)
        if self._counted_up is None or up_ms - self._counted_up >= COUNT_MS:
            self._going, self._counted_up = self._count(up_ms), up_ms
        self._clocks.look(self._going if followed else (), up_ms)

    def _count(self, up_ms: int) -> Collection[str]:
        outages, places = Outages(), set[str]()
        for name, entry in self.entries.items():
            if entry.received is not None:
                places.add(entry.place)
                outages.put(name, entry.place, gone=up_ms - entry.received_up > LATELY_MS)
        return places - outages.standing_still()

    def receive(self, entry: Entry, certificates: frozenset[str], up_ms: int) -> None:
        """What a Node said was compared with the certificates of its boot."""
        entry.certificates = certificates
        now = entry.node.health
        entry.counts = now is not None and now.credential in certificates
        said = list(entry.words.values())
        last = max((place for place, word in enumerate(said) if word.credential in certificates), default=None)
        if last is not None:
            entry.word, entry.words = said[last], {word.credential: word for word in said[last + 1 :]}
            entry.received, entry.received_up = self._shows(entry.place), up_ms

    def is_stale(self, entry: Entry) -> bool:
        """Whether the last that counts is too old."""
        if entry.received is None:
            return entry.silent
        return self._shows(entry.place) - entry.received >= STALE_MS

    def _shows(self, place: str) -> int:
        clocks: Mapping[str, int] = self._clocks.values if self._clocks is not None else {}
        return clocks.get(place, 0)
