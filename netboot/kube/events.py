"""Events, as `kubectl describe` shows them: `netboot.join.node_events.NodeEvents`, and those about Machines,
`netboot.controllers.object_events.Events`.

Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

import secrets
from datetime import UTC, datetime
from typing import Any

from kubernetes import client

from netboot.join.errors import ConflictError
from netboot.join.node_events import NodeEvent
from netboot.kube.connection import Connection
from netboot.kube.errors import REFUSALS, StatusError, refusal
from netboot.kube.resources.kinds import GROUP, KINDS, VERSION
from netboot.lifecycle.object_events import ObjectEvent

NAMESPACE = "default"
"""Of events about what has no namespace; the apiserver takes no other."""
LONGEST_NOTE = 1024


class KubeNodeEvents:
    """events.k8s.io/v1. `instance`: which process says it."""

    def __init__(self, connection: Connection, instance: str) -> None:
        self._connection, self._instance = connection, instance
        self._api = client.EventsV1Api(connection.api)

    def create(self, event: NodeEvent) -> str:
        regarding = {"apiVersion": "v1", "kind": "Node", "name": event.node}
        body = {
            **_body(NAMESPACE, event.node, event.reason, event.note, event.at_ms, good=event.status == "True"),
            "reportingController": "netboot.dev/lifecycle",
            "reportingInstance": self._instance,
            "action": event.about,
            "regarding": regarding | ({"uid": event.uid} if event.uid else {}),
        }
        self._connection.call(self._api.create_namespaced_event, NAMESPACE, body)
        return str(body["metadata"]["name"])

    def count(self, name: str, times: int, at_ms: int) -> None:
        _count(self._connection, NAMESPACE, name, times, at_ms)


class KubeMachineEvents:
    """The same about Machines, in their namespace."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection, self._namespace = connection, namespace
        self._api = client.EventsV1Api(connection.api)

    def tell(self, event: ObjectEvent) -> str:
        body = {
            **_body(self._namespace, event.machine, event.reason, event.note, event.at_ms, good=event.good),
            "reportingController": "netboot.dev/shipper",
            "reportingInstance": "shipper",
            "action": "Observed",
            "regarding": {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": KINDS["machine"].kind,
                "name": event.machine,
                "namespace": self._namespace,
                "uid": event.uid,
            },
        }
        try:
            self._connection.call(self._api.create_namespaced_event, self._namespace, body, expected=REFUSALS)
        except StatusError as error:
            raise refusal(error, self._connection.in_words) from None
        return str(body["metadata"]["name"])

    def tell_again(self, name: str, times: int, at_ms: int) -> None:
        _count(self._connection, self._namespace, name, times, at_ms)


def _body(namespace: str, about: str, reason: str, note: str, at_ms: int, *, good: bool) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{about[:200]}.{secrets.token_hex(8)}", "namespace": namespace},
        "eventTime": _moment(at_ms),
        "reason": reason,
        "note": note[:LONGEST_NOTE],
        "type": "Normal" if good else "Warning",
    }


def _count(connection: Connection, namespace: str, name: str, times: int, at_ms: int) -> None:
    body = {"series": {"count": times, "lastObservedTime": _moment(at_ms)}}
    try:
        connection.patch(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}", body, expected=(404,))
    except StatusError:
        raise ConflictError(f"the event {name} is gone") from None


def _moment(at_ms: int) -> str:
    """MicroTime."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
