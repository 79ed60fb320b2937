"""Accounts and tokens of a cluster that is asked whose a token is."""

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from lab.kube.accounts import Admin
from lab.kube.authority import write_private
from lab.kube.cluster import Cluster
from tests.processes import wait_for

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"


def made(admin: Admin, path: str, body: Mapping[str, object]) -> None:
    answer = admin("POST", path, body)
    assert answer.status_code == 201, answer.text


def token(admin: Admin, account: str, audiences: list[str]) -> str:
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    answer = admin("POST", f"{ACCOUNTS}/{account}/token", {**kind, "spec": {"audiences": audiences}})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["status"]["token"])


def may_review(admin: Admin, account: str) -> bool:
    """Whether the API server lets it ask whose a token is."""
    asked = {"verb": "create", "group": "authentication.k8s.io", "resource": "tokenreviews"}
    spec = {"user": f"system:serviceaccount:default:{account}", "resourceAttributes": asked}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    answer = admin("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {**kind, "spec": spec})
    assert answer.status_code == 201, answer.text
    return answer.json()["status"]["allowed"] is True


def review_kubeconfig(cluster: Cluster, admin: Admin, folder: Path, name: str, others: Iterable[str]) -> Path:
    """Of an account `review-NAME` with the rights that docs/operations.md gives it, its token in a file as in a Pod;
    `others`: accounts that are made, too."""
    account = f"review-{name}"
    for each in (account, *others):
        made(admin, ACCOUNTS, {"metadata": {"name": each}})
    rule = {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}
    made(admin, f"{RIGHTS}/clusterroles", {"metadata": {"name": account}, "rules": [rule]})
    binding = {
        "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
    }
    made(admin, f"{RIGHTS}/clusterrolebindings", binding)
    wait_for(lambda: may_review(admin, account))  # the authorizer learns of it by watching
    write_private(folder / "token", token(admin, account, []).encode())
    authority = base64.b64encode((cluster.folder / "ca.crt").read_bytes()).decode()
    document = {
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": cluster.url, "certificate-authority-data": authority}}],
        "users": [{"name": "here", "user": {"tokenFile": "token"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
    }
    write_private(folder / "review.kubeconfig", json.dumps(document).encode())
    return folder / "review.kubeconfig"
