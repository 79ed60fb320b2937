"""What can be seen now: which of the places that facts come from can be looked at, and the Nodes of each cluster.

Nothing is late before every process has said how far it is; one that is silent means that nobody can tell.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from netboot.config import Config
from netboot.controllers.nodes.observed import ObservedNodes, file_of
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.known import Node, NodeWord
from netboot.reread import Look, look
from netboot.status import FRESH_MS, Timed
from netboot.status.approver import ApproverStatus
from netboot.status.boot import BootStatus
from netboot.status.join import JoinStatus
from netboot.status.nodes import NodesStatus
from netboot.stores.status import StatusFolder

REPORTS = "reports"
"""The place where machines' reports come from: boot servers and their journals."""
LARGEST = 64 * 1024**2
"""Bytes of the Nodes of a cluster; the names of 50,000 are 3 MiB."""


class Sight(NamedTuple):
    """`seeing`: places that can be looked at; `nodes`: by cluster, as they were seen last; `words`: likewise, what else
    is to be seen on those Nodes of which there is anything."""

    seeing: frozenset[str]
    nodes: Mapping[str, Mapping[str, Node]]
    words: Mapping[str, Mapping[str, NodeWord]] = MappingProxyType({})


def cluster_place(cluster: str) -> str:
    """Where joins of a cluster are seen."""
    return f"cluster/{cluster}"


class Eyes:
    """`caught_up`: whether all that was journalled is in the state; `status`: what processes say of themselves."""

    def __init__(self, config: Config, status: StatusFolder, caught_up: Callable[[], bool]) -> None:
        self._status, self._caught_up = status, caught_up
        self._folder = config.data / "status"
        self._clusters = tuple(config.clusters)
        self._boot = [f"boot-{index}" for index in range(config.provisioning.workers)]
        self._join = [f"join-{index}" for index in range(config.join.workers if config.join is not None else 0)]
        self._files: dict[str, Look] = {}
        self._nodes: dict[str, Mapping[str, Node]] = {}
        self._words: dict[str, Mapping[str, NodeWord]] = {}

    def look(self, up_ms: int) -> Sight:
        """By what everybody said until that moment of `netboot.status.up_ms`."""
        seeing = set()
        followed = [name for name in self._clusters if self._follows(name, up_ms)]
        for cluster in self._clusters:  # then: who says that it follows Nodes has written how they are before
            self._read_nodes(cluster)
        if self._caught_up() and all(self._fresh(name, BootStatus, up_ms) for name in self._boot):
            seeing.add(REPORTS)
            joins = all(self._fresh(name, JoinStatus, up_ms) for name in self._join)
            seeing |= {cluster_place(name) for name in followed if joins and name in self._nodes}
        return Sight(frozenset(seeing), dict(self._nodes), dict(self._words))

    def _follows(self, cluster: str, up_ms: int) -> bool:
        processes = ((f"approver-{cluster}", ApproverStatus), (f"nodes-{cluster}", NodesStatus))
        return all(self._fresh(name, model, up_ms) for name, model in processes)

    def _fresh(self, process: str, model: type[Timed], up_ms: int) -> bool:
        try:
            said = self._status.read(process, model)
        except CannotTellError:
            return False
        well = not isinstance(said, ApproverStatus | NodesStatus) or said.followed
        return said is not None and well and abs(up_ms - said.up_ms) <= FRESH_MS  # it may say so while we look

    def _read_nodes(self, cluster: str) -> None:
        """Read again when it changed; what cannot be read leaves in force what was."""
        name = file_of(cluster)
        seen = look(self._folder / f"{name}.json")
        if seen is None or seen == self._files.get(cluster):
            return
        try:
            observed = self._status.read(name, ObservedNodes, LARGEST)
        except CannotTellError:
            return
        if observed is not None:
            self._files[cluster], self._nodes[cluster] = seen, observed.nodes()
            self._words[cluster] = observed.words()
