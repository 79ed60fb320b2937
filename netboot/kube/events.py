"""`netboot.join.node_events.NodeEvents`.

Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

import secrets
from datetime import UTC, datetime
from typing import Any

from kubernetes import client

from netboot.join.errors import ConflictError
from netboot.join.node_events import NodeEvent
from netboot.kube.connection import Connection
from netboot.kube.errors import StatusError

NAMESPACE = "default"
"""Of events about what has no namespace; the apiserver takes no other."""
LONGEST_NOTE = 1024


class KubeNodeEvents:
    """events.k8s.io/v1. `instance`: which process says it."""

    def __init__(self, connection: Connection, instance: str) -> None:
        self._connection, self._instance = connection, instance
        self._api = client.EventsV1Api(connection.api)

    def create(self, event: NodeEvent) -> str:
        name = f"{event.node[:200]}.{secrets.token_hex(8)}"
        regarding = {"apiVersion": "v1", "kind": "Node", "name": event.node}
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "eventTime": _moment(event.at_ms),
            "reportingController": "netboot.dev/lifecycle",
            "reportingInstance": self._instance,
            "action": event.about,
            "reason": event.reason,
            "regarding": regarding | ({"uid": event.uid} if event.uid else {}),
            "note": event.note[:LONGEST_NOTE],
            "type": "Normal" if event.status == "True" else "Warning",
        }
        self._connection.call(self._api.create_namespaced_event, NAMESPACE, body)
        return name

    def count(self, name: str, times: int, at_ms: int) -> None:
        body = {"series": {"count": times, "lastObservedTime": _moment(at_ms)}}
        try:
            self._connection.patch(
                f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events/{name}", body, expected=(404,)
            )
        except StatusError:
            raise ConflictError(f"the event {name} is gone") from None


def _moment(at_ms: int) -> str:
    """MicroTime."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
