"""What our accounts may in a cluster: the same as `deploy/kubernetes` says, as values for the self-check."""

from typing import NamedTuple

CSR_GROUP, CSRS = "certificates.k8s.io", "certificatesigningrequests"
OURS, ELECTIONS = "(ours)", "(elections)"
TELLS_OF_LEASES = "netboot-leases"
"""The policy that tells by which Leases an apiserver judges."""
POLICIES = ("netboot-tokens", "netboot-nodes", "netboot-taints", "netboot-gate", "netboot-deletions", TELLS_OF_LEASES)
"""Admission policies, and the bindings of the same names."""


class Right(NamedTuple):
    """What an account of ours needs; `namespace`: OURS stands for the configured one, ELECTIONS for that of
    elections beside it."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {what}{f' {self.name}' if self.name else ''}"


_KUBELET_SIGNERS = ("kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving")
_ADMISSION = "admissionregistration.k8s.io"
RIGHTS: dict[str, tuple[Right, ...]] = {
    "issuer": (
        Right("create", "", "secrets", namespace="kube-system"),
        Right("delete", "", "secrets", namespace="kube-system"),
        *(
            Right(verb, "coordination.k8s.io", "leases", namespace=OURS)
            for verb in ("get", "list", "create", "update", "delete")
        ),
        Right("get", "", "nodes"),
        Right("delete", "", "nodes"),
        Right("create", "authorization.k8s.io", "subjectaccessreviews"),
        Right("list", "rbac.authorization.k8s.io", "clusterrolebindings"),
        Right("get", "", "configmaps", namespace=OURS, name="netboot-signing"),
        *(
            Right("get", _ADMISSION, resource, name=name)
            for resource in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
            for name in POLICIES
        ),
    ),
    "approver": (
        Right("list", CSR_GROUP, CSRS),
        Right("watch", CSR_GROUP, CSRS),
        Right("update", CSR_GROUP, CSRS, "approval"),
        *(Right("approve", CSR_GROUP, "signers", name=name) for name in _KUBELET_SIGNERS),
        Right("delete", "", "secrets", namespace="kube-system"),
        Right("get", "coordination.k8s.io", "leases", namespace=OURS),
        Right("list", "coordination.k8s.io", "leases", namespace=OURS),
        *(Right(verb, "", "configmaps", namespace=OURS) for verb in ("get", "create", "update")),
    ),
    "nodes": (
        *(Right(verb, "", "nodes") for verb in ("list", "watch", "patch")),
        Right("patch", "", "nodes", "status"),
        Right("list", "", "pods"),
        Right("create", "", "pods", "eviction"),
        *(Right(verb, "events.k8s.io", "events", namespace="default") for verb in ("create", "patch")),
    ),
}
"""By role, with the next exactly what `deploy/kubernetes` grants; tests/cluster/test_rights.py proves each of them
needed."""
ELECTING: dict[str, tuple[Right, ...]] = {
    role: tuple(
        Right(verb, "coordination.k8s.io", "leases", namespace=ELECTIONS, name=role) for verb in ("get", "patch")
    )
    for role in ("approver", "nodes")
}
"""Likewise, where there are several replicas."""
