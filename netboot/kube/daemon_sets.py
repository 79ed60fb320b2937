"""DaemonSets of a cluster, as an administrator may list them: no account of netboot's has a right to."""

from typing import NamedTuple

from kubernetes import client

from netboot.join.daemon_sets import DaemonSet, daemon_set
from netboot.kube.connection import Connection
from netboot.kube.preconditions import KubePreconditions


class Listed(NamedTuple):
    """`server`: which apiserver said so; `found`: None: the account may not list them."""

    server: str
    found: tuple[DaemonSet, ...] | None


def daemon_sets(connection: Connection) -> Listed:
    """All of them whose Pods may run on our Nodes.

    Raises:
        ClusterUnavailableError: it cannot be told.
    """
    if not KubePreconditions(connection, "").can("list", "apps", "daemonsets"):
        return Listed(connection.server, None)
    documents, _ = connection.pages(client.AppsV1Api(connection.api).list_daemon_set_for_all_namespaces)
    found = sorted(each for each in map(daemon_set, documents) if each is not None)
    return Listed(connection.server, tuple(found))
