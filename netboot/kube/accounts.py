"""Kubeconfigs of netboot's ServiceAccounts, made with an administrator's kubeconfig by TokenRequest.

Source: https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-request-v1/
"""

import base64
import json
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from kubernetes import client

from netboot.kube.connection import connect
from netboot.kube.errors import ClusterRefusedError, StatusError
from netboot.kube.kubeconfig import read_kubeconfig

ACCOUNTS = {"issuer": "netboot-issuer", "approver": "netboot-approver", "nodes": "netboot-nodes"}
"""Role (the key in `clusters.<name>` of the configuration) → ServiceAccount."""
INVENTORY = "inventory"
"""The role of who reads the inventory's custom resources, in `inventory_kubernetes`."""
SHIPPER = "shipper"
"""Of who writes the status of machines there."""
ORDERS = "orders"
"""Of who writes the orders there that replicas share."""
ENROLMENTS = {"reader": "netboot-enrolments", "join": "netboot-enroller"}
"""Key in `enrolments_kubernetes` → ServiceAccount: who reads Enrolments, and who writes their status, too."""
KEYS = "keys"
"""Of who reads the keys that replicas share, in `keys_kubernetes`."""
_NAMES = {**ACCOUNTS, INVENTORY: "netboot-inventory", SHIPPER: "netboot-shipper", ORDERS: "netboot-orders"}
_NAMES |= {**ENROLMENTS, KEYS: "netboot-keys"}
_OPTIONS = {
    INVENTORY: " --inventory",
    SHIPPER: " --inventory",
    ORDERS: " --inventory",
    **dict.fromkeys(ENROLMENTS, " --enrolments"),
    KEYS: " --keys",
}
"""Of `netboot cluster manifests`."""


class Made(NamedTuple):
    """A kubeconfig to be written with mode 0600, and when its token expires, as the apiserver said."""

    account: str
    content: bytes
    expires_ms: int


def make_kubeconfig(admin: Path, role: str, namespace: str, seconds: int, server: str | None = None) -> Made:
    """A kubeconfig with a token of a role's ServiceAccount. `server`: another URL than the administrator's.

    Raises:
        ClusterUnavailableError: also where the account is not there yet (words say what to apply).
    """
    account = _NAMES[role]
    connection, read = connect(admin), read_kubeconfig(admin)
    try:
        api = client.CoreV1Api(connection.api)
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        answer = connection.call(api.create_namespaced_service_account_token, account, namespace, body, expected=(404,))
    except StatusError:
        raise ClusterRefusedError(
            f"there is no ServiceAccount {namespace}/{account} yet: "
            f"apply the manifests first (`netboot cluster manifests{_OPTIONS.get(role, '')} "
            "| kubectl apply -f -`)"
        ) from None
    finally:
        connection.api.last_response = None
        connection.close()
    status = answer["status"]
    cluster: dict[str, Any] = {"server": server or read.server}
    cluster["certificate-authority-data"] = base64.b64encode(read.authority.encode()).decode()
    if read.server_name and server is None:
        cluster["tls-server-name"] = read.server_name
    expires = datetime.fromisoformat(status["expirationTimestamp"])
    return Made(account, _document(account, cluster, status["token"]), round(expires.timestamp() * 1000))


def _document(account: str, cluster: dict[str, Any], token: str) -> bytes:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": account,
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": account, "context": {"cluster": "cluster", "user": account}}],
    }
    return json.dumps(document, indent=1).encode() + b"\n"
