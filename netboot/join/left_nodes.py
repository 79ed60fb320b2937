"""Nodes of machines that do not come back: deleted, by uid, for Kubernetes starts none of their Pods that must be there
but once (a StatefulSet's) elsewhere while they stand.

For an operator's word alone: a machine was retired, and its last certificates have ended by now; or it left the
inventory, and its Lease goes. That a Node is not Ready is never a reason; that one is Ready, or that somebody else has
a hand on it, is one to leave it alone.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from netboot.join.errors import NodeKeptError
from netboot.join.ports import ClusterAccess, Credential, NodeView

log = logging.getLogger(__name__)

RETIRED_MS = 25 * 3_600_000
"""From its retirement, with which renewals end; certificates live a day at most (`netboot.join.preconditions`)."""


@dataclass(slots=True)
class LeftNodes:
    """`retired()`: machines, and since when each is, by our clock. `registered(machine, uid)`: a boot of this machine
    is on record to have registered that Node. Both raise CannotTellError. For threads that each have machines of their
    own."""

    retired: Callable[[], Mapping[str, int]]
    registered: Callable[[str, str], bool]
    _none: dict[str, int] = field(default_factory=dict)
    """Machines that have no Node, and when they were retired: none comes while they are."""

    def clear_retired(self, cluster: ClusterAccess, credential: Credential, since: int, now_ms: int) -> None:
        """Delete the Node of this machine, which is retired, if it was long enough ago.

        Raises:
            CannotTellError: not now.
        """
        if now_ms - since < RETIRED_MS or self._none.get(credential.machine) == since:
            return
        if self.clear(cluster, credential, "it was retired"):
            self._none[credential.machine] = since

    def clear(self, cluster: ClusterAccess, credential: Credential, why: str) -> bool:
        """Delete the Node of a machine that does not come back; whether there is none then, or will be.

        Raises:
            CannotTellError: not now.
        """
        node = cluster.nodes.node(credential.node)
        if node is None:
            return True
        if not _let_go(node) or not self.registered(credential.machine, node.uid):
            return False
        try:
            cluster.nodes.delete(node.name, node.uid)
        except NodeKeptError as error:  # it goes with them, by itself; others need not wait for that
            log.warning("%s", error)
            return True
        fields = {"machine": credential.machine, "node": node.name, "uid": node.uid, "cluster": cluster.name}
        log.info("the Node of a machine that does not come back was deleted: %s", why, extra={"fields": fields})
        return True


def _let_go(node: NodeView) -> bool:
    """Whether nobody works there, or has a hand on it."""
    return node.marked and not (node.ready or node.cordoned or node.by_hand)
