"""What replicas share of acts as custom resources: Orders and Rollouts, each written by who read it last.

No list or read names a resourceVersion, so each is of what is there now
(https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list).
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple

from kubernetes import client
from pydantic import BaseModel

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.kube.connection import Connection
from netboot.kube.errors import ClusterRefusedError, StatusError
from netboot.kube.resources.kinds import GROUP, ORDER, ROLLOUT, VERSION, Kind
from netboot.lifecycle.order_objects import OrderObject, OrderSpec, order_object, state_of
from netboot.lifecycle.rollout_objects import RolloutObject, rollout_object
from netboot.lifecycle.rollout_specs import RolloutSpec

NUMBERS = "netboot-rollouts"
"""The ConfigMap that has the number of the last rollout."""
_TRIES, _DIGITS = 10, 9
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

    def patch(self, name: str, spec: BaseModel, before: _Before) -> dict[str, Any]:
        """As `write`; what others put at it stays, whatever that is. A merge patch leaves what it does not name as it
        is, and null takes a key away (RFC 7396)."""
        body = {"metadata": {"uid": before.uid, "resourceVersion": before.version}, "spec": every_key(spec)}
        group, version, namespace, plural = self._where
        path = f"/apis/{group}/{version}/namespaces/{namespace}/{plural}/{name}"
        try:
            return self._taken(self._connection.patch(path, body, expected=(404, 409)))
        except StatusError as error:
            raise ConflictError(f"{error.status} {error.reason}: {error.message}") from None

    def number(self, least: int) -> int:
        """One that was not given to anybody, that much at least: by a ConfigMap, whose version each taker goes by."""
        api = client.CoreV1Api(self._connection.api)
        for _ in range(_TRIES):
            try:
                there = self._connection.call(api.read_namespaced_config_map, NUMBERS, self._namespace, expected=(404,))
                last = str((there.get("data") or {}).get("last", "0"))
                number = max(least, 1 + int(last) if last.isdecimal() and len(last) <= _DIGITS else 0)
                version = there["metadata"]["resourceVersion"]
                body = {"metadata": {"resourceVersion": version}, "data": {"last": str(number)}}
                path = f"/api/v1/namespaces/{self._namespace}/configmaps/{NUMBERS}"
                self._connection.patch(path, body, expected=(404, 409))
            except StatusError as error:
                if error.status == 404:
                    raise ClusterRefusedError(
                        f"there is no ConfigMap {self._namespace}/{NUMBERS}, which numbers rollouts: `netboot cluster "
                        "manifests --inventory | kubectl apply -f -` has it"
                    ) from None
                continue
            return number
        raise ClusterUnavailableError("numbers of rollouts are taken by others all the time: try again")

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
    """Where channels point, and their rollouts, each by its channel's name:
    `netboot.lifecycle.rollout_objects.RolloutObjects`."""

    def __init__(self, reach: Callable[[], Connection], namespace: str) -> None:
        self._objects = _Objects(reach, namespace, ROLLOUT)

    def read(self, channel: str) -> RolloutObject | None:
        found = self._objects.read(channel)
        return _rollout(found) if found is not None else None

    def all(self) -> list[RolloutObject]:
        return sorted(map(_rollout, self._objects.all()), key=lambda each: each.channel)

    def write(self, channel: str, spec: RolloutSpec, before: RolloutObject | None) -> RolloutObject:
        if before is None:
            return _rollout(self._objects.write(channel, spec, None))
        return _rollout(self._objects.patch(channel, spec, _Before(before.uid, before.version)))

    def number(self, least: int) -> int:
        return self._objects.number(least)


def every_key(said: BaseModel) -> dict[str, Any]:
    """As JSON, with null for what the model leaves out, here and in models within."""
    inner = {name: value for name, value in said if isinstance(value, BaseModel)}
    written = dict.fromkeys(type(said).model_fields) | said.model_dump(mode="json", exclude=set(inner))
    return written | {name: every_key(value) for name, value in inner.items()}


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
    return rollout_object(*_identity(thing))
