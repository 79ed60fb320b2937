"""What machines are judged by besides their own facts: the inventory in force, the Nodes that a cluster shows, what was
done to them. Says of which machines any of it changed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from netboot.controllers.pieces import Going, in_pieces, unheard
from netboot.lifecycle.known import NO_WORD, Declared, Node, NodeWord
from netboot.lifecycle.outage import Outages
from netboot.lifecycle.transitions import Act, Mark, marks_after

_Nodes = Mapping[str, Mapping[str, Node]]
_Words = Mapping[str, Mapping[str, NodeWord]]
Acts = Mapping[str, Sequence[Act]]
"""Machine → what was done to it and is so still."""


class Surroundings:
    """Each `take_…` returns the machines for which it made a difference, and costs nothing where it is handed the very
    object of the time before."""

    def __init__(self) -> None:
        self.declared: Mapping[str, Declared] = {}
        self._named: Mapping[tuple[str, str], Declared] = {}
        """Those that join, by cluster and Node."""
        self._nodes: _Nodes = {}
        self._words: _Words = {}
        self._acts: Acts = {}
        self._marks: dict[str, frozenset[Mark]] = {}
        self._lost: set[str] = set()
        """That these are gone is known, and no part of an outage any more."""
        self._places: Mapping[str, set[str]] = {}
        self._outages: Mapping[str, Outages] = {}

    def node(self, declared: Declared) -> Node | None:
        """How the cluster has a machine's Node; None: it shows none."""
        return self._nodes.get(declared.cluster, {}).get(declared.node) if declared.joins else None

    def word(self, declared: Declared) -> NodeWord:
        """What else is to be seen on its Node."""
        return self._words.get(declared.cluster, {}).get(declared.node, NO_WORD) if declared.joins else NO_WORD

    def marks(self, name: str) -> frozenset[Mark]:
        """What is on a machine."""
        return self._marks.get(name, frozenset())

    def take_declared(self, declared: Mapping[str, Declared], going: Going = unheard) -> list[str]:
        """The machines of the inventory in force. All of it or, where `going` raises, nothing."""
        if declared is self.declared:
            return []
        named: dict[tuple[str, str], Declared] = {}
        places: defaultdict[str, set[str]] = defaultdict(set)
        outages: defaultdict[str, Outages] = defaultdict(Outages)
        changed = []
        for name, each in in_pieces(declared.items(), going):
            if self.declared.get(name) != each:
                changed.append(name)
            if each.joins:
                named[each.cluster, each.node] = each
                places[each.cluster].add(each.places.nodes)
                self._count(outages[each.cluster], each)
        self.declared, self._named, self._places, self._outages = declared, named, places, outages
        self._lost &= declared.keys()
        return changed

    def take_nodes(self, nodes: _Nodes, going: Going = unheard) -> list[str]:
        """Nodes by cluster."""
        before = self._nodes
        changed = [cluster for cluster, seen in nodes.items() if seen is not before.get(cluster)]
        different = [
            self._named[cluster, name]
            for cluster in changed
            for name in in_pieces(nodes[cluster].keys() | before.get(cluster, {}).keys(), going)
            if nodes[cluster].get(name) != before.get(cluster, {}).get(name) and (cluster, name) in self._named
        ]
        self._nodes = nodes
        return self._counted(different)

    def take_words(self, words: _Words) -> list[str]:
        """What else is to be seen on Nodes, by cluster."""
        before, self._words = self._words, words
        return [
            self._named[cluster, name].name
            for cluster, said in words.items()
            if said is not before.get(cluster)
            for name in said.keys() | before.get(cluster, {}).keys()
            if said.get(name) != before.get(cluster, {}).get(name) and (cluster, name) in self._named
        ]

    def take_acts(self, acts: Acts) -> list[str]:
        """What was done to machines."""
        if acts is self._acts:
            return []
        before, self._acts = self._marks, acts
        self._marks = {name: marks_after(done) for name, done in acts.items()}
        different = [name for name in before.keys() | self._marks.keys() if before.get(name) != self._marks.get(name)]
        self._counted(self.declared[name] for name in different if name in self.declared)
        return different

    def take_lost(self, lost: Mapping[str, bool]) -> None:
        """Whether each of these is lost."""
        different = [name for name, gone in lost.items() if gone != (name in self._lost) and name in self.declared]
        self._lost ^= set(different)
        self._counted(self.declared[name] for name in different)

    def clusters(self) -> Iterable[str]:
        """Those that any machine joins."""
        return self._places.keys()

    def places(self, followed: Iterable[str]) -> tuple[set[str], set[str]]:
        """Where Nodes are seen, of the clusters that are followed and have no outage; and where they are not."""
        seen, unseen, clusters = set[str](), set[str](), set(followed)
        for cluster, places in self._places.items():
            still = self._outages[cluster].standing_still() if cluster in clusters else places
            seen |= places - still
            unseen |= still
        return seen, unseen

    def _counted(self, different: Iterable[Declared]) -> list[str]:
        """Names of these, which are counted anew for outages."""
        names = []
        for each in different:
            names.append(each.name)
            if each.joins:
                self._count(self._outages[each.cluster], each)
        return names

    def _count(self, outages: Outages, declared: Declared) -> None:
        node = self.node(declared)
        if node is None or declared.name in self._lost or Mark.RETIRED in self.marks(declared.name):
            outages.drop(declared.node)
        else:
            outages.put(declared.node, declared.places.nodes, gone=node is Node.NOT_READY)
