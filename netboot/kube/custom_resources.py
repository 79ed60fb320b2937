"""Custom resources of the inventory, as the account `inventory` reads them (`netboot.machines.resources`)."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from kubernetes import client

from netboot.kube.connection import Connection
from netboot.kube.errors import ClusterRefusedError, StatusError
from netboot.kube.following import watched
from netboot.kube.resources.definitions import GROUP, KINDS, VERSION
from netboot.machines.resources import MOST_BYTES, Changed, Listed, Resource, Same, Seen


class KubeResources:
    """Those of one namespace."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection, self._namespace = connection, namespace
        self._api = client.CustomObjectsApi(connection.api)

    def watch(self, kind: str, seconds: float) -> Iterator[Seen]:
        """All of a kind, then what becomes of each, for about `seconds`.

        Raises:
            ClusterUnavailableError: it cannot be told, also where the API server does not have the kind.
        """
        plural, listed, size = KINDS[kind].plural, list[Resource](), 0
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{self._namespace}/{plural}"
        for told in watched(self._connection, partial(self._list, plural), path, seconds):
            if told.first:
                listed, size = [], 0
            listed += [_resource(kind, thing) for thing in told.page]
            size += sum(map(_size, told.page))
            if size > MOST_BYTES:
                raise ClusterRefusedError(f"{plural}.{GROUP} have more than {MOST_BYTES >> 20} MiB: no inventory has")
            if told.listed:
                yield Listed(tuple(listed))
            elif told.thing is not None:
                size += _size(told.thing)
                yield _seen(kind, told.event, told.thing)
                if size > MOST_BYTES:
                    return  # all that came, were it all still there: whoever lists anew knows

    def _list(self, plural: str, **how: Any) -> Any:
        try:
            return self._api.list_namespaced_custom_object(GROUP, VERSION, self._namespace, plural, **how)
        except StatusError as error:
            if error.status != 404:
                raise
            raise ClusterRefusedError(
                f"the apiserver has no {plural}.{GROUP}: `netboot cluster crds | kubectl apply -f -`; where they were "
                "removed, so were all objects"
            ) from None


def _seen(kind: str, event: str, thing: dict[str, Any]) -> Seen:
    if event in ("ADDED", "MODIFIED"):
        return Changed(_resource(kind, thing), there=True)
    if event == "DELETED":
        return Changed(_resource(kind, thing), there=False)
    return Same()


def _size(thing: dict[str, Any]) -> int:
    """Of what is kept of it, in bytes or nearly so."""
    return len(json.dumps(thing.get("spec")))


def _resource(kind: str, thing: dict[str, Any]) -> Resource:
    name = str(thing["metadata"]["name"])
    return Resource(kind=kind, name=name, shown=f"{KINDS[kind].kind.lower()}/{name}", spec=thing.get("spec"))
