"""`netboot.join.control_plane.ControlPlane`.

By lists alone, which the nodes account may make. None names a resourceVersion, so none is answered by what an API
server remembers (https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list); one that
names a single object reads that alone (`ListPredicate` in apiserver/pkg/registry/generic/registry/store.go).
"""

from collections.abc import Mapping
from typing import Any

from kubernetes import client

from netboot.kube.connection import Connection
from netboot.lifecycle.control_planes import LABEL

_NAMESPACE = "kube-system"
_MIRROR = "kubernetes.io/config.mirror"


class KubeControlPlane:
    """Nodes by their label; the mirror Pods of etcd, which kubeadm runs from a file (phases/etcd/local.go)."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._api = connection, client.CoreV1Api(connection.api)

    def nodes(self) -> Mapping[str, bool]:
        items, _ = self._connection.pages(self._api.list_node, label_selector=LABEL)
        return {str(node["metadata"]["name"]): _ready(node) for node in items}

    def etcd(self, node: str) -> bool | None:
        listed, field = self._api.list_namespaced_pod, f"metadata.name=etcd-{node}"
        items, _ = self._connection.pages(listed, _NAMESPACE, field_selector=field)
        mirrors = [pod for pod in items if _MIRROR in (pod["metadata"].get("annotations") or {})]
        return _ready(mirrors[0]) if mirrors else None


def _ready(thing: dict[str, Any]) -> bool:
    conditions = (thing.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
