"""What a cluster says of the Nodes of our machines now, as a node collector hands it to the lifecycle's loop:
`data/status/observed-<cluster>.json`, written when it changed."""

from collections.abc import Mapping
from pathlib import Path

from images.values.strict import Strict
from netboot.join.ports import NodeView
from netboot.lifecycle.known import Node
from netboot.stores.status import StatusFile


class ObservedNodes(Strict):
    """Names of Nodes by how they are."""

    in_service: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    gated: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()

    def nodes(self) -> dict[str, Node]:
        """How each is, by its name."""
        named = {
            Node.IN_SERVICE: self.in_service,
            Node.CORDONED: self.cordoned,
            Node.GATED: self.gated,
            Node.NOT_READY: self.not_ready,
        }
        return {name: node for node, names in named.items() for name in names}


def file_of(cluster: str) -> str:
    """The name under which it lies in `data/status`."""
    return f"observed-{cluster}"


def how(node: NodeView) -> Node:
    """How a Node is: of what keeps it from work the first that its boot has to come past."""
    if not node.ready:
        return Node.NOT_READY
    if node.gated:
        return Node.GATED
    return Node.CORDONED if node.cordoned else Node.IN_SERVICE


def observed(nodes: Mapping[str, Node]) -> ObservedNodes:
    """By how they are."""
    names = {each: tuple(sorted(name for name, node in nodes.items() if node is each)) for each in Node}
    return ObservedNodes(
        in_service=names[Node.IN_SERVICE],
        cordoned=names[Node.CORDONED],
        gated=names[Node.GATED],
        not_ready=names[Node.NOT_READY],
    )


class ObservedFile:
    """Writes what changed."""

    def __init__(self, folder: Path, cluster: str) -> None:
        self._file = StatusFile(folder, file_of(cluster))
        self._written: dict[str, Node] | None = None

    def write(self, nodes: Mapping[str, Node] | None) -> bool:
        """All Nodes as they are; None: not known yet. Whether the file has them."""
        if nodes is not None and nodes != self._written:
            if not self._file.write(observed(nodes)):
                return False
            self._written = dict(nodes)
        return True
