"""What is looked at of a cluster's control plane. The adapter is `netboot.kube.control_plane`.

Every method raises `ClusterUnavailableError` when it cannot tell right now.
"""

from collections.abc import Mapping
from typing import Protocol


class ControlPlane(Protocol):
    """Of one cluster, as the API server's store has it now: that it answers at all is etcd's quorum's doing."""

    def nodes(self) -> Mapping[str, bool]:
        """Its Nodes, whoever boots them: whether each is Ready."""
        ...

    def etcd(self, node: str) -> bool | None:
        """Whether the Pod `etcd-<node>`, as kubeadm has it, is Ready; None: there is none."""
        ...
