"""`netboot.join.ports.Nodes`."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from kubernetes import client

from netboot.join.ports import MARK, NodeView
from netboot.kube.connection import Connection, milliseconds
from netboot.kube.errors import StatusError
from netboot.machines.values import UNCHECKED


class KubeNodes:
    """Node objects."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._api = connection, client.CoreV1Api(connection.api)

    def node(self, name: str) -> NodeView | None:
        try:
            return _view(self._connection.call(self._api.read_node, name, expected=(404,)))
        except StatusError:
            return None

    def delete(self, name: str, uid: str) -> None:
        body = {"preconditions": {"uid": uid}}
        with suppress(StatusError):  # 409: its uid is another one by now
            self._connection.call(self._api.delete_node, name, body=body, expected=(404, 409))

    def watch(self, seconds: float) -> Iterator[NodeView]:
        for node in self._connection.follow(self._api.list_node, "/api/v1/nodes", seconds):
            yield _view(node)


def _view(node: dict[str, Any]) -> NodeView:
    metadata, status = node["metadata"], node.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    ready = conditions.get("Ready") or {}
    since = ready.get("lastTransitionTime")
    is_ready = ready.get("status") == "True"
    return NodeView(
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        ready=is_ready,
        boot_id=str((status.get("nodeInfo") or {}).get("bootID") or ""),
        created_ms=milliseconds(metadata["creationTimestamp"]),
        ready_since_ms=milliseconds(since) if is_ready and since else None,
        marked=MARK.items() <= (metadata.get("labels") or {}).items(),
        gated=any(taint["key"] == UNCHECKED for taint in (node.get("spec") or {}).get("taints") or ()),
    )
