"""A Pod for each machine, from which its network is measured. The operator applies them, with his own rights."""

from collections.abc import Mapping
from typing import Any

from netboot.fabric.tools import Over

NAMESPACE = "netboot-fabric"
SECONDS = 4 * 3600
"""After which a Pod ends, if nobody deletes it."""


def pods(nodes: Mapping[str, str], image: str, over: Over) -> list[dict[str, Any]]:
    """The namespace and the Pods. `nodes`: machine -> node. Pods are bound to their nodes, past the scheduler and on
    every taint; RDMA devices are a privileged Pod's."""
    level = {"pod-security.kubernetes.io/enforce": "privileged"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": level}}
    return [namespace, *(_pod(machine, node, image, over) for machine, node in nodes.items())]


def _pod(machine: str, node: str, image: str, over: Over) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "tools", "image": image, "command": ["sleep", "infinity"]}
    container["securityContext"] = {"privileged": True} if over == "rdma" else {"allowPrivilegeEscalation": False}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"fabric-{machine}", "namespace": NAMESPACE, "labels": {"app": "netboot-fabric"}},
        "spec": {
            "nodeName": node,
            "hostNetwork": True,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": SECONDS,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
        },
    }
