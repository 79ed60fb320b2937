"""`netboot.join.ports.Leases`: one Lease for each machine, what it says in annotations, strictly read back.

Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/
"""

import hashlib
import logging
from contextlib import suppress
from typing import Any, get_type_hints

from kubernetes import client
from pydantic import ValidationError

from images.values.faults import first_fault
from netboot.join.errors import ConflictError, RefusedError
from netboot.join.ports import Credential
from netboot.kube.connection import Connection
from netboot.kube.errors import StatusError

log = logging.getLogger(__name__)
PREFIX = "netboot.dev/"
LABELS = {"app.kubernetes.io/managed-by": "netboot"}
_SELECTOR = "app.kubernetes.io/managed-by=netboot"
_ANNOTATED = [name for name in Credential.model_fields if name not in ("holder", "version")]
_NUMBERS = {name for name, kind in get_type_hints(Credential).items() if kind in (int, int | None)}
_COUNTED = {name for name, kind in get_type_hints(Credential).items() if kind is int}
"""Always written, so that their absence is damage and not a nought."""


def lease_name(cluster: str, machine: str) -> str:
    """`netboot-` and 40 hex digits: a machine's name may be longer than a Lease's, or hold what one may not."""
    return "netboot-" + hashlib.sha256(f"{cluster}\0{machine}".encode()).hexdigest()[:40]


class KubeLeases:
    """The Leases of machines in our namespace: a Credential is their holder and annotations."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection, self._namespace = connection, namespace
        self._api = client.CoordinationV1Api(connection.api)
        self._damaged: set[str] = set()
        """What was said of damaged ones at the last look at all of them, which is taken every minute."""

    def read(self, cluster: str, machine: str) -> Credential | None:
        """What the machine's Lease says; None: there is none.

        Raises:
            RefusedError: the Lease is damaged; the words say where and what to do.
        """
        name = lease_name(cluster, machine)
        try:
            lease = self._connection.call(self._api.read_namespaced_lease, name, self._namespace, expected=(404,))
        except StatusError:
            return None
        credential = _credential(lease)
        if (credential.cluster, credential.machine) != (cluster, machine):
            raise _damaged(lease, f"it is of machine {credential.machine} in cluster {credential.cluster}")
        return credential

    def write(self, credential: Credential) -> Credential:
        body, namespace, call = _lease(credential, self._namespace), self._namespace, self._connection.call
        name = body["metadata"]["name"]
        try:
            if credential.version:
                written = call(self._api.replace_namespaced_lease, name, namespace, body, expected=(404, 409))
            else:
                written = call(self._api.create_namespaced_lease, namespace, body, expected=(409,))
        except StatusError:
            raise ConflictError(f"the Lease of {credential.machine} was written by somebody else since") from None
        return credential.model_copy(update={"version": _version(written)})

    def delete(self, credential: Credential) -> None:
        version, _, uid = credential.version.partition("/")
        body = {"preconditions": {"uid": uid, "resourceVersion": version}}
        name = lease_name(credential.cluster, credential.machine)
        with suppress(StatusError):
            delete = self._api.delete_namespaced_lease
            self._connection.call(delete, name, self._namespace, body=body, expected=(404, 409))

    def all(self) -> list[Credential]:
        """A damaged Lease is logged, once, and left out, for the others are sound."""
        leases, _ = self._connection.pages(self._api.list_namespaced_lease, self._namespace, label_selector=_SELECTOR)
        credentials, damaged = [], set()
        for lease in leases:
            try:
                credentials.append(_credential(lease))
            except RefusedError as error:
                damaged.add(str(error))
        for words in sorted(damaged - self._damaged):
            log.error("%s", words)
        self._damaged = damaged
        return credentials


def _lease(credential: Credential, namespace: str) -> dict[str, Any]:
    values = {name: getattr(credential, name) for name in _ANNOTATED}
    metadata = {
        "name": lease_name(credential.cluster, credential.machine),
        "namespace": namespace,
        "labels": LABELS,
        "annotations": {_key(name): str(value) for name, value in values.items() if value is not None and value != ""},
    }
    if credential.version:
        # The uid, too: a Lease may be made by an update (registry/coordination/lease), so one that was deleted would
        # come back.
        metadata["resourceVersion"], _, metadata["uid"] = credential.version.partition("/")
    spec = {"holderIdentity": credential.holder}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def _credential(lease: dict[str, Any]) -> Credential:
    metadata = lease["metadata"]
    annotations = metadata.get("annotations") or {}
    values: dict[str, Any] = {}
    for name in _ANNOTATED:
        text = annotations.get(_key(name))
        if text is None and name in _COUNTED:
            raise _damaged(lease, f"{_key(name)} is missing")
        if text is not None:
            values[name] = _number(lease, name, text) if name in _NUMBERS else text
    values["holder"] = (lease.get("spec") or {}).get("holderIdentity") or ""
    try:
        credential = Credential(**values, version=_version(lease))
    except ValidationError as error:
        fault = first_fault(error)
        raise _damaged(lease, f"{_key(str(fault.location[0]))}: {fault.message}") from None
    if not credential.holder or not credential.machine:
        raise _damaged(lease, "it names no holder or no machine")
    return credential


def _number(lease: dict[str, Any], name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise _damaged(lease, f"{_key(name)} is not a number")
    return int(text)


def owner(version: str, name: str) -> dict[str, str]:
    """The Lease of that name as it was read, as an owner: what it owns, Kubernetes deletes after it.

    Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
    """
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": name, "uid": version.partition("/")[2]}


def _version(lease: dict[str, Any]) -> str:
    return f"{lease['metadata']['resourceVersion']}/{lease['metadata']['uid']}"


def _key(name: str) -> str:
    return PREFIX + name.replace("_", "-")


def _damaged(lease: dict[str, Any], why: str) -> RefusedError:
    name, namespace = lease["metadata"]["name"], lease["metadata"]["namespace"]
    return RefusedError(
        f"the Lease {namespace}/{name} is damaged ({why}), so it cannot be told who holds this machine's credential: "
        f"look at it, then `kubectl -n {namespace} delete lease {name}`"
    )
