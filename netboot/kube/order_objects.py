"""`netboot.lifecycle.order_objects.OrderObjects`: custom resources Order.

No list or read names a resourceVersion, so each is of what is there now
(https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list).
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from kubernetes import client

from netboot.join.errors import ConflictError
from netboot.kube.connection import Connection
from netboot.kube.errors import ClusterRefusedError, StatusError
from netboot.kube.resources.definitions import GROUP, ORDER, VERSION
from netboot.lifecycle.order_objects import OrderObject, OrderSpec, order_object, state_of

_OTHERS = ("labels", "annotations", "ownerReferences", "finalizers")
"""What people and other programs put at an object: a write leaves it as it was read."""


class KubeOrderObjects:
    """Those of one namespace. Thread-safe."""

    def __init__(self, reach: Callable[[], Connection], namespace: str) -> None:
        """`reach` connects, or raises ClusterUnavailableError: it is asked again then."""
        self._reach, self._namespace = reach, namespace
        self._where = GROUP, VERSION, namespace, ORDER.plural

    @cached_property
    def _connection(self) -> Connection:
        return self._reach()

    @cached_property
    def _api(self) -> client.CustomObjectsApi:
        return client.CustomObjectsApi(self._connection.api)

    def read(self, name: str) -> OrderObject | None:
        read = self._api.get_namespaced_custom_object
        try:
            return _read(self._connection.call(read, *self._where, name, expected=(404,)))
        except StatusError as error:
            if error.reason != "NotFound" or ORDER.plural not in error.message:
                raise self._missing() from None  # it is the kind that is not there
            return None

    def all(self) -> list[OrderObject]:
        operation = partial(self._listed, self._api.list_namespaced_custom_object, *self._where)
        things = self._connection.pages(operation)[0]
        return sorted(map(_read, things), key=lambda each: each.name)

    def write(self, name: str, spec: OrderSpec, before: OrderObject | None) -> OrderObject:
        metadata: dict[str, Any] = {"name": name, "namespace": self._namespace}
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": ORDER.kind, "metadata": metadata}
        body["spec"] = spec.model_dump(mode="json", exclude_none=True)
        if before is not None:
            metadata |= {**before.metadata, "uid": before.uid, "resourceVersion": before.version}
        write = (
            partial(self._api.create_namespaced_custom_object, *self._where, body)
            if before is None
            else partial(self._api.replace_namespaced_custom_object, *self._where, name, body)
        )
        try:
            return _read(self._connection.call(write, expected=(404, 409)))
        except StatusError as error:
            if error.status == 404 and before is None:
                raise self._missing() from None
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
            f"the apiserver has no {ORDER.plural}.{GROUP}, or no namespace {self._namespace}: `netboot cluster crds | "
            "kubectl apply -f -`"
        )


def _read(thing: dict[str, Any]) -> OrderObject:
    metadata = thing["metadata"]
    version, generation = str(metadata["resourceVersion"]), int(metadata.get("generation") or 0)
    found = order_object(str(metadata["name"]), str(metadata["uid"]), generation, thing.get("spec"), version)
    others = {key: metadata[key] for key in _OTHERS if key in metadata}
    going = "deletionTimestamp" in metadata
    return found._replace(state=state_of(thing.get("status")), metadata=others, going=going)
