"""What an operator does once for a cluster, for tests and the demo: apply `deploy/kubernetes`, make the kubeconfigs."""

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import requests

from lab.kube.authority import write_private
from lab.kube.cluster import Cluster, ClusterError
from netboot.kube.accounts import ACCOUNTS, make_kubeconfig
from netboot.kube.manifests import DEFAULT_NAMESPACE, manifests

FORCE_SECONDS = 180
"""Against hanging alone."""
_KINDS = {
    "Namespace": "/api/v1/namespaces",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}


class Admin:
    """The apiserver as the owner of `token`, or of one of the cluster's pairs of certificate and key, sees it, by plain
    HTTP: not the code under test."""

    def __init__(self, cluster: Cluster, token: str = "", pair: str = "admin") -> None:
        self._url, self._session = cluster.url, requests.Session()
        self._session.trust_env = False  # a CA bundle of the environment would win over ours
        self._session.verify = str(cluster.folder / "ca.crt")
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"
        else:
            self._session.cert = (str(cluster.folder / f"{pair}.crt"), str(cluster.folder / f"{pair}.key"))

    def __call__(
        self, method: str, path: str, body: Any = None, *, user: str = "", group: str = ""
    ) -> requests.Response:
        """One request; as somebody else, where `user` is given."""
        kind = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        headers = {"Content-Type": kind, "Impersonate-User": user, "Impersonate-Group": group}
        headers = {name: value for name, value in headers.items() if value}
        data = None if body is None else json.dumps(body).encode()
        return self._session.request(method, self._url + path, data=data, headers=headers, timeout=60)

    def apply(self, document: dict[str, Any]) -> None:
        """Server-side apply.

        Raises:
            ClusterError: the apiserver does not take it.
        """
        path = object_path(document) + "?fieldManager=netboot-lab&force=true"
        answer = self("PATCH", path, document)
        if answer.status_code not in (200, 201):
            raise ClusterError(f"{document['kind']} {document['metadata']['name']} was not applied: {answer.text}")

    def close(self) -> None:
        """Close what is open."""
        self._session.close()


def object_path(document: dict[str, Any]) -> str:
    """Where an object of `deploy/kubernetes` is."""
    metadata = document["metadata"]
    return f"{_KINDS[document['kind']].format(metadata.get('namespace', ''))}/{metadata['name']}"


def apply_manifests(cluster: Cluster, namespace: str = DEFAULT_NAMESPACE) -> None:
    """Apply `deploy/kubernetes`; returns when its admission policies are in force (a second or less).

    Raises:
        ClusterError.
    """
    with contextlib.closing(Admin(cluster)) as admin:
        for document in manifests(namespace):
            admin.apply(document)
    wait_until_in_force(cluster, namespace)


def wait_until_in_force(cluster: Cluster, namespace: str = DEFAULT_NAMESPACE) -> None:
    """Until the admission policies of `deploy/kubernetes`, which were applied, are.

    Raises:
        ClusterError: they are not within three minutes.
    """
    with contextlib.closing(Admin(cluster)) as admin:
        deadline, pause = monotonic() + FORCE_SECONDS, threading.Event()
        while not all(_in_force(admin, namespace)):
            if monotonic() >= deadline:
                raise ClusterError(f"the admission policies were not in force within {FORCE_SECONDS} s")
            pause.wait(0.05)


def _in_force(admin: Admin, namespace: str) -> Iterator[bool]:
    """Whether each policy refuses what it should; nothing is written."""
    account = f"system:serviceaccount:{namespace}:netboot-issuer"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "netboot-probe"}, "type": "Opaque"}
    answer = admin("POST", "/api/v1/namespaces/kube-system/secrets?dryRun=All", secret, user=account)
    yield answer.status_code == 422 and "netboot-tokens" in answer.text
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "netboot-probe"}}
    user = "system:node:netboot-probe"
    answer = admin("POST", "/api/v1/nodes?dryRun=All", node, user=user, group="system:nodes")
    yield answer.status_code == 422 and "netboot-nodes" in answer.text


def kubeconfigs(cluster: Cluster, folder: Path, namespace: str = DEFAULT_NAMESPACE) -> dict[str, Path]:
    """`issuer.kubeconfig`, `approver.kubeconfig` and `nodes.kubeconfig` in `folder`, good for a day; by role.

    Raises:
        ClusterUnavailableError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for role in ACCOUNTS:
        paths[role] = folder / f"{role}.kubeconfig"
        write_private(paths[role], make_kubeconfig(cluster.admin, role, namespace, 86_400).content)
    return paths
