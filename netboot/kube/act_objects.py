"""What replicas share of acts as custom resources: Orders, Rollouts and Assignments, each written by who read it last.

No list or read names a resourceVersion, so each is of what is there now
(https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list).
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple

from kubernetes import client
from pydantic import BaseModel

from netboot.join.errors import ConflictError
from netboot.kube.connection import Connection
from netboot.kube.errors import ClusterRefusedError, StatusError
from netboot.kube.resources.kinds import ASSIGNMENT, GROUP, ORDER, ROLLOUT, VERSION, Kind
from netboot.lifecycle.assignment_objects import AssignmentObject, AssignmentSpec, assignment_object
from netboot.lifecycle.order_objects import OrderObject, OrderSpec, order_object, state_of
from netboot.lifecycle.rollout_objects import RolloutObject, RolloutSpec, rollout_object

_OTHERS = ("labels", "annotations", "ownerReferences", "finalizers")
"""What people and other programs put at an object: a write leaves it as it was read."""


class _Before(NamedTuple):
    """What a change goes by."""

    uid: str
    version: str
    metadata: Mapping[str, Any] = {}


class _Objects:
    """Of one kind, in one namespace. Thread-safe."""

    def __init__(self, reach: Callable[[], Connection], namespace: str, kind: Kind) -> None:
        """`reach` connects, or raises ClusterUnavailableError: it is asked again then."""
        self._reach, self._namespace, self._kind = reach, namespace, kind
        self._where = GROUP, VERSION, namespace, kind.plural

    @cached_property
    def _connection(self) -> Connection:
        return self._reach()

    @cached_property
    def _api(self) -> client.CustomObjectsApi:
        return client.CustomObjectsApi(self._connection.api)

    def read(self, name: str) -> dict[str, Any] | None:
        read = self._api.get_namespaced_custom_object
        try:
            return self._taken(self._connection.call(read, *self._where, name, expected=(404,)))
        except StatusError as error:
            if error.reason != "NotFound" or self._kind.plural not in error.message:
                raise self._missing() from None  # it is the kind that is not there
            return None

    def all(self) -> list[dict[str, Any]]:
        operation = partial(self._listed, self._api.list_namespaced_custom_object, *self._where)
        return [self._taken(each) for each in self._connection.pages(operation)[0]]

    def write(self, name: str, spec: BaseModel, before: _Before | None) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name, "namespace": self._namespace}
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": self._kind.kind, "metadata": metadata}
        body["spec"] = spec.model_dump(mode="json", exclude_none=True)
        if before is not None:
            metadata |= {**before.metadata, "uid": before.uid, "resourceVersion": before.version}
        write = (
            partial(self._api.create_namespaced_custom_object, *self._where, body)
            if before is None
            else partial(self._api.replace_namespaced_custom_object, *self._where, name, body)
        )
        try:
            return self._taken(self._connection.call(write, expected=(404, 409)))
        except StatusError as error:
            if error.status == 404 and before is None:
                raise self._missing() from None
            raise ConflictError(f"{error.status} {error.reason}: {error.message}") from None

    def delete(self, name: str, before: _Before) -> None:
        """A name that is another object's by now is a conflict, and so is one that says another thing."""
        conditions = client.V1Preconditions(uid=before.uid, resource_version=before.version)
        delete = partial(
            self._api.delete_namespaced_custom_object,
            *self._where,
            name,
            body=client.V1DeleteOptions(preconditions=conditions),
        )
        try:
            self._connection.call(delete, expected=(404, 409))
        except StatusError as error:
            raise ConflictError(f"{error.status} {error.reason}: {error.message}") from None

    def _listed(self, operation: Any, *where: str, **how: Any) -> Any:
        try:
            return operation(*where, **how)
        except StatusError as error:
            if error.status == 404:
                raise self._missing() from None
            raise

    def _missing(self) -> ClusterRefusedError:
        return ClusterRefusedError(
            f"the apiserver has no {self._kind.plural}.{GROUP}, or no namespace {self._namespace}: "
            "`netboot cluster crds | kubectl apply -f -`"
        )

    def _taken(self, thing: Any) -> dict[str, Any]:
        if not isinstance(thing, dict) or not isinstance(thing.get("metadata"), dict):
            raise ClusterRefusedError(f"the apiserver sent a {self._kind.kind} that is none")
        return thing


class KubeOrderObjects:
    """Orders, each by its machine's name: `netboot.lifecycle.order_objects.OrderObjects`."""

    def __init__(self, reach: Callable[[], Connection], namespace: str) -> None:
        self._objects = _Objects(reach, namespace, ORDER)

    def read(self, name: str) -> OrderObject | None:
        found = self._objects.read(name)
        return _order(found) if found is not None else None

    def all(self) -> list[OrderObject]:
        return sorted(map(_order, self._objects.all()), key=lambda each: each.name)

    def write(self, name: str, spec: OrderSpec, before: OrderObject | None) -> OrderObject:
        was = _Before(before.uid, before.version, before.metadata) if before is not None else None
        return _order(self._objects.write(name, spec, was))


class KubeRolloutObjects:
    """Rollouts, each by its number: `netboot.lifecycle.rollout_objects.RolloutObjects`."""

    def __init__(self, reach: Callable[[], Connection], namespace: str) -> None:
        self._objects = _Objects(reach, namespace, ROLLOUT)

    def read(self, number: int) -> RolloutObject | None:
        found = self._objects.read(str(number))
        return _rollout(found) if found is not None else None

    def all(self) -> list[RolloutObject]:
        return sorted(map(_rollout, self._objects.all()), key=lambda each: each.number)

    def write(self, number: int, spec: RolloutSpec, before: RolloutObject | None) -> RolloutObject:
        was = _Before(before.uid, before.version, before.metadata) if before is not None else None
        return _rollout(self._objects.write(str(number), spec, was))

    def delete(self, there: RolloutObject) -> None:
        self._objects.delete(str(there.number), _Before(there.uid, there.version))


class KubeAssignmentObjects:
    """Where channels point, each by its name: `netboot.lifecycle.assignment_objects.AssignmentObjects`."""

    def __init__(self, reach: Callable[[], Connection], namespace: str) -> None:
        self._objects = _Objects(reach, namespace, ASSIGNMENT)

    def read(self, channel: str) -> AssignmentObject | None:
        found = self._objects.read(channel)
        return _assignment(found) if found is not None else None

    def write(self, channel: str, spec: AssignmentSpec, before: AssignmentObject | None) -> AssignmentObject:
        was = _Before(before.uid, before.version, before.metadata) if before is not None else None
        return _assignment(self._objects.write(channel, spec, was))


def _identity(thing: dict[str, Any]) -> tuple[str, str, int, Any, str]:
    metadata = thing["metadata"]
    generation, version = int(metadata.get("generation") or 0), str(metadata["resourceVersion"])
    return str(metadata["name"]), str(metadata["uid"]), generation, thing.get("spec"), version


def _others(thing: dict[str, Any]) -> dict[str, Any]:
    return {key: thing["metadata"][key] for key in _OTHERS if key in thing["metadata"]}


def _order(thing: dict[str, Any]) -> OrderObject:
    found, going = order_object(*_identity(thing)), "deletionTimestamp" in thing["metadata"]
    return found._replace(state=state_of(thing.get("status")), metadata=_others(thing), going=going)


def _rollout(thing: dict[str, Any]) -> RolloutObject:
    return rollout_object(*_identity(thing))._replace(metadata=_others(thing))


def _assignment(thing: dict[str, Any]) -> AssignmentObject:
    return assignment_object(*_identity(thing))._replace(metadata=_others(thing))
