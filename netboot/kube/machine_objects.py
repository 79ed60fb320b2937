"""Machines of the inventory as objects, for who writes their status: `netboot.controllers.shipper.Objects`.

Their status is written by server-side apply, of which each field has its owner:
https://kubernetes.io/docs/reference/using-api/server-side-apply/.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from kubernetes import client

from netboot.kube.connection import Connection
from netboot.kube.errors import ClusterRefusedError, StatusError
from netboot.kube.events import KubeMachineEvents
from netboot.kube.following import watched
from netboot.kube.resources.definitions import GROUP, HOLD, KINDS, VERSION, Kind
from netboot.lifecycle.objects import MachineObject, ObjectSeen, ObjectsListed, Seen, Unchanged

MANAGER = "netboot-shipper"
"""Who owns the fields of a status."""
_PLURAL = KINDS["machine"].plural


class KubeMachineObjects(KubeMachineEvents):
    """Those of one namespace, and Events about them."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        super().__init__(connection, namespace)
        self._path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{_PLURAL}"
        self._objects = client.CustomObjectsApi(connection.api)

    def watch(self, seconds: float) -> Iterator[Seen]:
        listed = list[MachineObject]()
        for told in watched(self._connection, self._list, self._path, seconds):
            listed = [] if told.first else listed
            listed += [_object(thing) for thing in told.page]
            if told.listed:
                yield ObjectsListed(tuple(listed))
                listed = []
            elif told.thing is not None:
                known = told.event in ("ADDED", "MODIFIED", "DELETED")
                yield ObjectSeen(_object(told.thing), told.event != "DELETED") if known else Unchanged()

    def write(self, machine: MachineObject, status: Mapping[str, Any]) -> MachineObject | None:
        about = machine.name, machine.uid
        written = write_status(self._connection, KINDS["machine"], self._namespace, about, status)
        return _object(written) if written is not None else None

    def _list(self, **how: Any) -> Any:
        try:
            operation = partial(self._objects.list_namespaced_custom_object, GROUP, VERSION, self._namespace, _PLURAL)
            return operation(**how)
        except StatusError as error:
            if error.status != 404:
                raise
            raise ClusterRefusedError(
                f"the apiserver has no {_PLURAL}.{GROUP}: `netboot cluster crds | kubectl apply -f -`"
            ) from None


class KubeHoldObjects:
    """Holds of one namespace, for who writes their status: `netboot.controllers.hold_statuses.Objects`."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection, self._namespace = connection, namespace

    def write(self, name: str, uid: str, status: Mapping[str, Any]) -> None:
        write_status(self._connection, HOLD, self._namespace, (name, uid), status)


def write_status(
    connection: Connection, kind: Kind, namespace: str, about: tuple[str, str], status: Mapping[str, Any]
) -> Any | None:
    """Have an object, by name and uid, say this; as it is then, None: it is gone.

    Raises:
        ClusterUnavailableError.
    """
    name, uid = about
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "status": status,
    }
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{kind.plural}/{quote(name, safe='')}/status"
    try:
        how = f"?fieldManager={MANAGER}&force=true"
        return connection.patch(path + how, body, expected=(404, 409), kind="apply-patch")
    except StatusError:  # 409: another one has its name now
        return None


def _object(thing: Mapping[str, Any]) -> MachineObject:
    metadata, version = thing["metadata"], str(thing["metadata"].get("resourceVersion", ""))
    return MachineObject(
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        generation=int(metadata.get("generation", 0)),
        version=int(version) if version.isdecimal() else 0,
        spec=thing.get("spec"),
        status=thing.get("status") or {},
    )
