"""`netboot.join.ports.Nodes`."""

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from kubernetes import client

from netboot.join.certificates import fingerprint
from netboot.join.errors import ConflictError, InvalidError, NodeKeptError
from netboot.join.node_said import BY_HAND, GATE, WRITTEN, GateSaid, HealthSaid, holder
from netboot.join.ports import MARK, NodeView
from netboot.kube.connection import Connection, milliseconds
from netboot.kube.errors import StatusError
from netboot.kube.following import follow
from netboot.machines.values import UNCHECKED

log = logging.getLogger(__name__)

_HEALTHY = "netboot.dev/Healthy"
_CREDENTIAL, _CHECKS = "netboot.dev/health-credential", "netboot.dev/health-checks"
MOST_MESSAGE = 300
"""Characters of what a node says, for a log line."""
MOST_MANAGER = 150
"""Likewise of who cordoned it."""


class KubeNodes:
    """Node objects."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._api = connection, client.CoreV1Api(connection.api)
        self._unread: set[str] = set()
        """Names of Nodes that could not be read when they came last."""

    def node(self, name: str) -> NodeView | None:
        try:
            return _view(self._connection.call(self._api.read_node, name, expected=(404,)))
        except StatusError:
            return None

    def delete(self, name: str, uid: str) -> None:
        body = {"preconditions": {"uid": uid}}
        with suppress(StatusError):  # 409: its uid is another one by now
            answer = self._connection.call(self._api.delete_node, name, body=body, expected=(404, 409))
            kept = (answer.get("metadata") or {}).get("finalizers")  # of a Node that is gone the answer has none
            if kept:
                raise NodeKeptError(name, kept)

    def watch(self, seconds: float) -> Iterator[NodeView]:
        for node in follow(self._connection, self._api.list_node, "/api/v1/nodes", seconds):
            view = self._read(node)
            if view is not None:
                yield view

    def _read(self, node: dict[str, Any]) -> NodeView | None:
        """None: it cannot be read, which is said once, and hinders no other."""
        name = str(node["metadata"]["name"])
        try:
            view = _view(node)
        except (ValueError, KeyError, TypeError, AttributeError):
            if name not in self._unread:
                log.exception("the Node %s cannot be read, so it is left as it is", name)
            self._unread.add(name)
            return None
        self._unread.discard(name)
        return view

    def taint(
        self, node: NodeView, taints: Sequence[Mapping[str, str]], labels: Mapping[str, str] | None = None
    ) -> NodeView:
        # A list of taints is replaced whole: the version makes this a change of the very list that was looked at.
        metadata: dict[str, Any] = {"uid": node.uid, "resourceVersion": node.version}
        if labels is not None:
            metadata["labels"] = dict.fromkeys(node.written) | dict(labels)
            metadata["annotations"] = {WRITTEN: ",".join(sorted(labels)) or None}
        body = {"metadata": metadata, "spec": {"taints": [dict(taint) for taint in taints]}}
        try:
            return _view(self._connection.patch(f"/api/v1/nodes/{node.name}", body, expected=(404, 409, 422)))
        except StatusError as error:
            raise _refusal(node, error) from None

    def tell_gate(self, node: NodeView, said: GateSaid, at_ms: int) -> None:
        at = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": GATE, **said._asdict(), "lastHeartbeatTime": at}
        if node.gate is None or node.gate.status != said.status:
            condition["lastTransitionTime"] = at
        # Conditions of others are merged by their types, and stay.
        metadata = {"uid": node.uid, "resourceVersion": node.version}
        body = {"metadata": metadata, "status": {"conditions": [condition]}}
        path = f"/api/v1/nodes/{node.name}/status"
        try:
            self._connection.patch(path, body, expected=(404, 409, 422), kind="strategic-merge-patch")
        except StatusError as error:
            raise _refusal(node, error) from None


def _refusal(node: NodeView, error: StatusError) -> ConflictError | InvalidError:
    if error.status == 422:
        return InvalidError(error.message)
    return ConflictError(f"the Node {node.name} was changed by somebody else since")


def _gate(conditions: Mapping[str, Mapping[str, Any]]) -> GateSaid | None:
    said = conditions.get(GATE)
    return GateSaid(*(str(said.get(name) or "") for name in GateSaid._fields)) if said is not None else None


def _health(node: dict[str, Any]) -> HealthSaid | None:
    """What it says itself; None: nothing."""
    said = {each["type"]: each for each in (node.get("status") or {}).get("conditions") or ()}.get(_HEALTHY)
    if said is None:
        return None
    annotations = node["metadata"].get("annotations") or {}
    pairs = [check.partition("=") for check in str(annotations.get(_CHECKS, "")).split(",")]
    return HealthSaid(
        status=str(said["status"]),
        reason=str(said.get("reason") or ""),
        message="".join(c if " " <= c <= "~" else " " for c in str(said.get("message") or ""))[:MOST_MESSAGE],
        credential=fingerprint([str(annotations.get(_CREDENTIAL, ""))]),
        checks={name: status for name, _, status in pairs if name},
        at=str(said.get("lastHeartbeatTime") or ""),
    )


def _moment(text: str | None) -> int | None:
    """What a node wrote of a time; None: nothing that can be read. Go knows years that Python does not (0, 10000)."""
    try:
        return milliseconds(text) if text else None
    except ValueError:
        return None


def _cordoned_by(metadata: dict[str, Any]) -> str:
    """Who wrote `spec.unschedulable` last, and when, as the apiserver noted it; a program's name is its own choice.
    Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management"""
    for field in metadata.get("managedFields") or ():
        if "f:unschedulable" in ((field.get("fieldsV1") or {}).get("f:spec") or {}):
            said = f"{field.get('manager')}, {field.get('time')}"
            return "".join(c if " " <= c <= "~" else " " for c in said)[:MOST_MANAGER]
    return ""


def _view(node: dict[str, Any]) -> NodeView:
    metadata, status = node["metadata"], node.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    ready = conditions.get("Ready") or {}
    since = _moment(ready.get("lastTransitionTime"))
    is_ready = ready.get("status") == "True"
    spec = node.get("spec") or {}
    taints, cordoned = tuple(spec.get("taints") or ()), spec.get("unschedulable") is True
    return NodeView(
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        ready=is_ready,
        boot_id=str((status.get("nodeInfo") or {}).get("bootID") or ""),
        created_ms=milliseconds(metadata["creationTimestamp"]),
        ready_since_ms=since if is_ready else None,
        marked=MARK.items() <= labels.items(),
        gated=any(taint["key"] == UNCHECKED for taint in taints),
        cordoned=cordoned,
        taints=taints,
        health=_health(node),
        by_hand=annotations.get(BY_HAND[0]) == BY_HAND[1],
        version=str(metadata["resourceVersion"]),
        labels={sys.intern(key): sys.intern(value) for key, value in labels.items()},  # most are those of many Nodes
        written=tuple(filter(None, str(annotations.get(WRITTEN, "")).split(","))),
        cordoned_by=_cordoned_by(metadata) if cordoned else "",
        holder=holder(labels, annotations, cordoned=cordoned),
        gate=_gate(conditions),
    )
