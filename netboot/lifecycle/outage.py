"""One outage is not many failures: where most Nodes of a class are gone at once, nobody's clock goes on. Pure.

The node controller of Kubernetes has the same idea (`--unhealthy-zone-threshold`, k8s.io: node lifecycle controller).
"""

from collections import Counter

FEW = 4
"""Classes with fewer Nodes are judged with their whole cluster; in a cluster with fewer there is no outage to tell."""


class Outages:
    """Of one cluster. Each Node that counts is put here whenever anything of it changes, so that a look at a cluster of
    50,000 costs what its classes do."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, bool]] = {}
        self._known: Counter[str] = Counter()
        self._gone: Counter[str] = Counter()

    def put(self, node: str, place: str, *, gone: bool) -> None:
        """A Node of that place (`Places.nodes`), in the place of what was said of it before."""
        self.drop(node)
        self._of[node] = (place, gone)
        self._known[place] += 1
        self._gone[place] += gone

    def drop(self, node: str) -> None:
        """It does not count (any more)."""
        place, gone = self._of.pop(node, ("", False))
        if place:
            self._known[place] -= 1
            self._gone[place] -= gone

    def standing_still(self) -> frozenset[str]:
        """Places whose clocks stand still."""
        known, gone = {place: count for place, count in self._known.items() if count}, self._gone
        whole = sum(known.values()) >= FEW and 2 * gone.total() > sum(known.values())
        return frozenset(
            place for place, count in known.items() if (2 * gone[place] > count if count >= FEW else whole)
        )
