"""One outage is not many failures: where most Nodes of a class are gone at once, nobody's clock goes on. Pure.

The node controller of Kubernetes has the same idea (`--unhealthy-zone-threshold`, k8s.io: node lifecycle controller).
"""

from collections import Counter
from collections.abc import Mapping

from netboot.lifecycle.known import Node

FEW = 4
"""Classes with fewer Nodes are judged with their whole cluster; in a cluster with fewer there is no outage to tell."""


def standing_still(nodes: Mapping[str, Node], classes: Mapping[str, str]) -> frozenset[str]:
    """Places (`Places.nodes`) whose clocks stand still. `nodes`: of one cluster; `classes`: Node → its place."""
    known = Counter(classes[name] for name in nodes if name in classes)
    gone = Counter(classes[name] for name, node in nodes.items() if name in classes and node is Node.NOT_READY)
    whole = known.total() >= FEW and 2 * gone.total() > known.total()
    return frozenset(place for place, count in known.items() if (2 * gone[place] > count if count >= FEW else whole))
