"""Machines of the inventory as objects, for who writes their status: `netboot.controllers.shipper.Objects`.

Their status is written by server-side apply, of which each field has its owner:
https://kubernetes.io/docs/reference/using-api/server-side-apply/. Until when what they say is known to be so, a Lease
says, as those of Nodes do: https://kubernetes.io/docs/concepts/architecture/leases/.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from kubernetes import client

from netboot.join.errors import ConflictError
from netboot.kube.connection import Connection
from netboot.kube.errors import REFUSALS, ClusterRefusedError, StatusError, refusal
from netboot.kube.events import KubeMachineEvents
from netboot.kube.following import watched
from netboot.kube.resources.kinds import GROUP, KINDS, VERSION, Kind
from netboot.lifecycle.objects import MachineObject, ObjectSeen, ObjectsListed, Seen, Unchanged

MANAGER = "netboot-shipper"
"""Who owns the fields of a status."""
LEASE = "netboot-shipper"
LEASE_SECONDS = 60
"""What is older is not known to be so any more."""
_PLURAL = KINDS["machine"].plural


class KubeMachineObjects(KubeMachineEvents):
    """Those of one namespace, and Events about them."""

    def __init__(self, connection: Connection, namespace: str, *, versioned: bool = False) -> None:
        """`versioned`: what is written goes with the version that it was worked out from, for others write, too."""
        super().__init__(connection, namespace)
        self._versioned = versioned
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

    def write(self, machine: MachineObject, status: Mapping[str, Any]) -> MachineObject:
        about = {"name": machine.name, "uid": machine.uid}
        about |= {"resourceVersion": machine.version} if self._versioned else {}
        return _object(_write_status(self._connection, KINDS["machine"], self._namespace, about, status))

    def renew(self, holder: str, at_ms: int) -> None:
        moment = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        body = {"spec": {"holderIdentity": holder, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": moment}}
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases/{LEASE}"
        try:
            self._connection.patch(path, body, expected=(404,))
        except StatusError:
            raise ClusterRefusedError(
                f"the namespace {self._namespace} has no Lease {LEASE}: "
                "`netboot cluster manifests --inventory | kubectl apply -f -`"
            ) from None

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


class KubeStatuses:
    """Objects of one kind, of one namespace, for who writes their status: `netboot.controllers.act_statuses`."""

    def __init__(self, connection: Connection, namespace: str, kind: Kind) -> None:
        self._connection, self._namespace, self._kind = connection, namespace, kind

    def write(self, name: str, uid: str, status: Mapping[str, Any]) -> None:
        _write_status(self._connection, self._kind, self._namespace, {"name": name, "uid": uid}, status)


def _write_status(
    connection: Connection, kind: Kind, namespace: str, about: Mapping[str, str], status: Mapping[str, Any]
) -> Any:
    """Have an object, by name and uid, and by its version where that is given, say this; as it is then.

    Raises:
        ConflictError: it is gone, another one has its name, it is of another version, or the API server says so.
        InvalidError: this one is not taken.
        ClusterUnavailableError.
    """
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind.kind,
        "metadata": {**about, "namespace": namespace},
        "status": status,
    }
    name = quote(about["name"], safe="")
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{kind.plural}/{name}/status"
    try:
        how = f"?fieldManager={MANAGER}&force=true"
        return connection.patch(path + how, body, expected=REFUSALS, kind="apply-patch")
    except StatusError as error:
        if error.status in (404, 409):  # 409: another one has its name now, or it was written since
            raise ConflictError(f"{error.status} {error.reason}: {error.message}") from None
        raise refusal(error, connection.in_words) from None


def _object(thing: Mapping[str, Any]) -> MachineObject:
    metadata = thing["metadata"]
    return MachineObject(
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        generation=int(metadata.get("generation", 0)),
        version=str(metadata.get("resourceVersion", "")),
        spec=thing.get("spec"),
        status=thing.get("status") or {},
        writer=_writer(metadata),
    )


def _writer(metadata: Mapping[str, Any]) -> str:
    """The manager that changed the status last."""
    entries = [each for each in metadata.get("managedFields") or () if each.get("subresource") == "status"]
    last: Mapping[str, Any] = max(entries, key=lambda each: str(each.get("time", "")), default={})
    return str(last.get("manager", ""))
