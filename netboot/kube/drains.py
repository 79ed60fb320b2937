"""`netboot.join.node_drains.NodeDrains`.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kubernetes import client

from netboot.join.errors import ConflictError
from netboot.join.node_drains import DO_NOT_DISRUPT, DrainedNode, Pod
from netboot.kube.connection import Connection, milliseconds
from netboot.kube.errors import StatusError

_MIRROR = "kubernetes.io/config.mirror"
_GONE = 404
_NOT_NOW = (409, 429, 500)
"""Another uid by now; a disruption budget; more than one of them, which the apiserver cannot weigh."""


class KubeDrains:
    """Nodes and Pods as the nodes account may read them: by lists, which name one node. No list here is answered from
    a cache, for none names a resourceVersion."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._api = connection, client.CoreV1Api(connection.api)

    def node(self, name: str) -> DrainedNode | None:
        items, _ = self._connection.pages(self._api.list_node, field_selector=f"metadata.name={name}")
        return _node(items[0]) if items else None

    def pods(self, name: str) -> list[Pod]:
        listed = self._api.list_pod_for_all_namespaces
        items, _ = self._connection.pages(listed, field_selector=f"spec.nodeName={name}")
        return [_pod(item) for item in items]

    def evict(self, pod: Pod) -> str:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        evict = self._api.create_namespaced_pod_eviction
        try:
            self._connection.call(evict, pod.name, pod.namespace, body, expected=(_GONE, *_NOT_NOW))
        except StatusError as error:
            return "" if error.status == _GONE else error.message or f"status {error.status}"
        return ""

    def change(
        self, node: DrainedNode, taints: Sequence[Mapping[str, str]], annotations: Mapping[str, str | None]
    ) -> None:
        metadata = {"uid": node.uid, "resourceVersion": node.version, "annotations": dict(annotations)}
        body = {"metadata": metadata, "spec": {"taints": [dict(taint) for taint in taints]}}
        try:
            self._connection.patch(f"/api/v1/nodes/{node.name}", body, expected=(404, 409))
        except StatusError:
            raise ConflictError(f"the Node {node.name} was changed by somebody else since") from None


def _node(node: dict[str, Any]) -> DrainedNode:
    metadata, spec = node["metadata"], node.get("spec") or {}
    conditions = {each["type"]: each for each in (node.get("status") or {}).get("conditions") or ()}
    return DrainedNode(
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        created_ms=milliseconds(metadata["creationTimestamp"]),
        ready=(conditions.get("Ready") or {}).get("status") == "True",
        cordoned=spec.get("unschedulable") is True,
        taints=tuple(spec.get("taints") or ()),
        annotations=metadata.get("annotations") or {},
        labels=metadata.get("labels") or {},
        version=str(metadata["resourceVersion"]),
    )


def _pod(pod: dict[str, Any]) -> Pod:
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    owners = [each for each in metadata.get("ownerReferences") or () if each.get("controller")]
    return Pod(
        namespace=str(metadata["namespace"]),
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        owner=str(owners[0]["kind"]) if owners else "",
        mirror=_MIRROR in annotations,
        local=any("emptyDir" in volume for volume in spec.get("volumes") or ()),
        over=(pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"),
        leaving=bool(metadata.get("deletionTimestamp")),
        veto=annotations.get(DO_NOT_DISRUPT) == "true",
    )
