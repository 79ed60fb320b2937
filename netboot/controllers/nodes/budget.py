"""How many Nodes may be closed at a time: beyond that it is rather a mistake that reaches them all. Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Self

from netboot.controllers.nodes.gate import is_held, may_close, was_closed
from netboot.join.ports import NodeView


class Budget(NamedTuple):
    """By class: how many Nodes there are, and how many of them are closed. A Node whose machine is held, quarantined or
    retired is not counted: it is kept from work in any case, and somebody sees to it."""

    of: Counter[str]
    closed: Counter[str]

    @classmethod
    def of_nodes(cls, nodes: Iterable[tuple[str, NodeView]]) -> Self:
        """`nodes`: each with its class."""
        counted = [(place, node.taints) for place, node in nodes if node.marked and not is_held(node.taints)]
        closed = Counter(place for place, taints in counted if was_closed(taints))
        return cls(Counter(place for place, _ in counted), closed)

    def allows(self, place: str) -> bool:
        """Whether this class, and its cluster, may have one more that is closed."""
        cluster = may_close(self.closed.total(), self.of.total())
        return cluster and may_close(self.closed[place], self.of[place])
