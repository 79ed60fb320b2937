"""What machines are judged by besides their own facts: the inventory in force, the Nodes that a cluster shows, what was
done to them. Says of which machines any of it changed."""

from collections.abc import Iterable, Mapping, Sequence

from netboot.lifecycle.known import Declared, Node
from netboot.lifecycle.outage import standing_still
from netboot.lifecycle.transitions import Act, Mark, marks_after

_Nodes = Mapping[str, Mapping[str, Node]]
Acts = Mapping[str, Sequence[Act]]
"""Machine → what was done to it and is so still."""


class Surroundings:
    """Each `take_…` returns the machines for which it made a difference, and costs nothing where it is handed the very
    object of the time before."""

    def __init__(self) -> None:
        self.declared: Mapping[str, Declared] = {}
        self._named: dict[tuple[str, str], Declared] = {}
        """Those that join, by cluster and Node."""
        self._nodes: _Nodes = {}
        self._acts: Acts = {}
        self._marks: dict[str, frozenset[Mark]] = {}
        self._lost: set[str] = set()
        self._places: dict[str, frozenset[str]] = {}
        self._still: dict[str, frozenset[str]] = {}

    def node(self, declared: Declared) -> Node | None:
        """How the cluster has a machine's Node; None: it shows none."""
        return self._nodes.get(declared.cluster, {}).get(declared.node) if declared.joins else None

    def marks(self, name: str) -> frozenset[Mark]:
        """What is on a machine."""
        return self._marks.get(name, frozenset())

    def take_declared(self, declared: Mapping[str, Declared]) -> list[str]:
        """The machines of the inventory in force."""
        if declared is self.declared:
            return []
        before, self.declared = self.declared, declared
        joining = [each for each in declared.values() if each.joins]
        self._named = {(each.cluster, each.node): each for each in joining}
        clusters = {each.cluster for each in joining}
        self._places = {
            name: frozenset(each.places.nodes for each in joining if each.cluster == name) for name in clusters
        }
        self._judge_outages()
        return [name for name, each in declared.items() if before.get(name) != each]

    def take_nodes(self, nodes: _Nodes) -> list[str]:
        """Nodes by cluster."""
        before, self._nodes = self._nodes, nodes
        changed = [cluster for cluster, seen in nodes.items() if seen is not before.get(cluster)]
        if changed:
            self._judge_outages()
        different = [
            (cluster, name)
            for cluster in changed
            for name in nodes[cluster].keys() | before.get(cluster, {}).keys()
            if nodes[cluster].get(name) != before.get(cluster, {}).get(name)
        ]
        return [self._named[key].name for key in different if key in self._named]

    def take_acts(self, acts: Acts) -> list[str]:
        """What was done to machines."""
        if acts is self._acts:
            return []
        before, self._acts = self._marks, acts
        self._marks = {name: marks_after(done) for name, done in acts.items()}
        self._judge_outages()
        return [name for name in before.keys() | self._marks.keys() if before.get(name) != self._marks.get(name)]

    def take_lost(self, lost: Mapping[str, bool]) -> None:
        """Whether each of these is lost: that it is gone is known, and no part of an outage any more."""
        before = self._lost
        self._lost = {name for name in (*before, *lost) if lost.get(name, name in self.declared)}
        if self._lost != before:
            self._judge_outages()

    def clusters(self) -> Iterable[str]:
        """Those that any machine joins."""
        return self._places.keys()

    def places(self, followed: Iterable[str]) -> tuple[set[str], set[str]]:
        """Where Nodes are seen, of the clusters that are followed and have no outage; and where they are not."""
        seen, unseen, clusters = set[str](), set[str](), set(followed)
        for cluster, places in self._places.items():
            still = self._still[cluster] if cluster in clusters else places
            seen |= places - still
            unseen |= still
        return seen, unseen

    def _judge_outages(self) -> None:
        for cluster in self._places:
            classes = {
                node: each.places.nodes
                for (of, node), each in self._named.items()
                if of == cluster and each.name not in self._lost and Mark.RETIRED not in self.marks(each.name)
            }
            self._still[cluster] = standing_still(self._nodes.get(cluster, {}), classes)
