"""What draining needs of a cluster: one Node, its Pods, and the eviction API. The adapter is `netboot.kube.drains`.

Every method raises `ClusterUnavailableError` when it cannot tell right now.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

DRAIN, ORDER = "netboot.dev/drain", "netboot.dev/order"
"""The taint (NoSchedule) of a Node that is being drained, or is drained, by its value; the annotation by which a
machine is told to reboot (`images.node.orders`)."""
DRAIN_ORDER = "netboot.dev/drain-order"
"""The annotation of a Node that one of several replicas drains: the id of the order, which that replica alone has."""
DO_NOT_DISRUPT = "netboot.dev/do-not-disrupt"
"""The annotation by which a Pod vetoes, `true`; only where its node's class lets it (`netboot.machines.classes`)."""
DRAINING, DRAINED = "Draining", "Drained"


class DrainedNode(NamedTuple):
    """A Node, read from the apiserver's store for this. `cordoned`: it is `unschedulable`; `taints`: all, as they are;
    `version`: opaque."""

    name: str
    uid: str
    created_ms: int
    ready: bool
    cordoned: bool
    taints: tuple[Mapping[str, str], ...]
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    version: str


class Pod(NamedTuple):
    """A Pod on a Node. `owner`: the kind of its controller, "": it has none; `mirror`: the kubelet runs it from a file;
    `local`: it has an emptyDir; `over`: all of it has ended; `leaving`: it is being deleted; `veto`: it has
    DO_NOT_DISRUPT."""

    namespace: str
    name: str
    uid: str
    owner: str
    mirror: bool
    local: bool
    over: bool
    leaving: bool
    veto: bool = False

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class NodeDrains(Protocol):
    """Of one cluster."""

    def node(self, name: str) -> DrainedNode | None:
        """As it is now; None: there is none."""
        ...

    def pods(self, name: str) -> list[Pod]:
        """All that are bound to it."""
        ...

    def evict(self, pod: Pod) -> str:
        """Ask for exactly this Pod to go; "": it goes, or is gone. Otherwise why it may not now, in the apiserver's
        words: a disruption budget, most of all."""
        ...

    def change(
        self, node: DrainedNode, taints: Sequence[Mapping[str, str]], annotations: Mapping[str, str | None]
    ) -> None:
        """Give it exactly these taints, and these annotations (None: not this one), in one write, as it was read.

        Raises:
            ConflictError: somebody else wrote since; read again.
        """
        ...
