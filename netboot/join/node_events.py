"""Kubernetes Events about Nodes, as values; who writes them: `netboot.kube.events`."""

from typing import NamedTuple, Protocol

from netboot.lifecycle.reasons import Status


class NodeEvent(NamedTuple):
    """`node`, `uid`: of the Node, "": there is none; `about`: which condition, or `Remedy`; `at_ms`: when it was
    found."""

    node: str
    uid: str
    about: str
    status: Status
    reason: str
    note: str
    at_ms: int

    @property
    def same(self) -> tuple[str, str, str, str]:
        """What makes it one with an earlier event."""
        return self.node, self.uid, self.about, self.reason


class NodeEvents(Protocol):
    """Events of one cluster. Both methods raise ClusterUnavailableError."""

    def create(self, event: NodeEvent) -> str:
        """A new one; its name."""
        ...

    def count(self, name: str, times: int, at_ms: int) -> None:
        """It came again, so many times in all. Raises ConflictError: it is gone."""
        ...
