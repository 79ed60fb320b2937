"""What a cluster says of the Nodes of our machines now, as a node collector hands it to the lifecycle's loop:
`data/status/observed-<cluster>.json`, written when it changed."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from images.values.strict import Strict
from netboot.join.ports import NodeView
from netboot.lifecycle.known import Node, NodeWord
from netboot.stores.status import StatusFile


class ObservedNodes(Strict):
    """Names of Nodes by how they are."""

    in_service: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    gated: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()
    failed: Mapping[str, str] = Field(default_factory=dict)
    """Those that say under a certificate of their boot that a check failed: which boot."""
    held: Mapping[str, str] = Field(default_factory=dict)
    """Those that somebody else has taken: who, in words."""

    def words(self) -> dict[str, NodeWord]:
        """What else is to be seen on those of which there is anything, by name."""
        names = self.failed.keys() | self.held.keys()
        return {name: NodeWord(self.failed.get(name, ""), self.held.get(name, "")) for name in names}

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


def observed(nodes: Mapping[str, Node], words: Mapping[str, NodeWord]) -> ObservedNodes:
    """By how they are."""
    names = {each: tuple(sorted(name for name, node in nodes.items() if node is each)) for each in Node}
    return ObservedNodes(
        in_service=names[Node.IN_SERVICE],
        cordoned=names[Node.CORDONED],
        gated=names[Node.GATED],
        not_ready=names[Node.NOT_READY],
        failed={name: word.failed for name, word in sorted(words.items()) if word.failed},
        held={name: word.holder for name, word in sorted(words.items()) if word.holder},
    )


class ObservedFile:
    """Writes what changed."""

    def __init__(self, folder: Path, cluster: str) -> None:
        self._file = StatusFile(folder, file_of(cluster))
        self._written: tuple[dict[str, Node], dict[str, NodeWord]] | None = None

    def write(self, nodes: Mapping[str, Node] | None, words: Mapping[str, NodeWord]) -> bool:
        """All Nodes as they are; None: not known yet. `words`: what else is to be seen on them. Whether the file has
        them."""
        if nodes is not None and (nodes, words) != self._written:
            if not self._file.write(observed(nodes, words)):
                return False
            self._written = dict(nodes), dict(words)
        return True
