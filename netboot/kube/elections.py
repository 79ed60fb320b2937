"""`netboot.controllers.elector.Leases`: one Lease by which replicas elect who leads, in a namespace of its own.

It is made with the manifests, and never here: no account of the service may create or delete one.
Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/
"""

from typing import Any

from kubernetes import client

from netboot.join.errors import ConflictError, ElectionRefusedError
from netboot.kube.connection import Connection
from netboot.kube.errors import StatusError
from netboot.lifecycle.election import Lease

RELEASED = "netboot.dev/released-by"
"""Annotation of a Lease that nobody holds: who let go of it."""
_REFUSED = (401, 403, 404)


class KubeElection:
    """The Lease of one kind of leader. `namespace`: that of elections."""

    def __init__(self, connection: Connection, namespace: str, name: str) -> None:
        self._connection, self._namespace, self._name = connection, namespace, name
        self._api = client.CoordinationV1Api(connection.api)

    def read(self) -> Lease:
        """As etcd has it.

        Raises:
            ElectionRefusedError: it is not there, or not for this account. ClusterUnavailableError: not answered.
        """
        try:
            return _lease(
                self._connection.call(self._api.read_namespaced_lease, self._name, self._namespace, expected=_REFUSED)
            )
        except StatusError as error:
            raise self._refused(error) from None

    def write(self, lease: Lease) -> Lease:
        """Over the very one that was read; with what the API server made of it.

        Raises:
            ConflictError: it is another by now. ElectionRefusedError, ClusterUnavailableError: as `read`.
        """
        # The uid, too: one that was deleted and made anew is another. What others wrote onto it stays.
        metadata = {
            "uid": lease.uid,
            "resourceVersion": lease.version,
            "annotations": {RELEASED: lease.released or None},
        }
        spec = {
            "holderIdentity": lease.holder,
            "leaseTransitions": lease.transitions,
            "leaseDurationSeconds": lease.seconds,
            "acquireTime": lease.acquired or None,
            "renewTime": lease.renewed or None,
        }
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases/{self._name}"
        try:
            return _lease(self._connection.patch(path, {"metadata": metadata, "spec": spec}, expected=(409, *_REFUSED)))
        except StatusError as error:
            if error.status == 409:
                raise ConflictError(f"the Lease {self._namespace}/{self._name} was written by somebody else") from None
            raise self._refused(error) from None

    def _refused(self, error: StatusError) -> ElectionRefusedError:
        if error.status != 404:
            return ElectionRefusedError(str(self._connection.in_words(error)))
        return ElectionRefusedError(
            f"there is no Lease {self._namespace}/{self._name}, by which replicas elect who leads: "
            "`netboot cluster manifests | kubectl apply -f -`"
        )


def _lease(answer: Any) -> Lease:
    """What somebody else left out, or wrote in its place, is as nothing."""
    metadata, spec = answer["metadata"], answer.get("spec") or {}
    return Lease(
        uid=str(metadata["uid"]),
        version=str(metadata["resourceVersion"]),
        holder=str(spec.get("holderIdentity") or ""),
        transitions=int(spec.get("leaseTransitions") or 0),
        seconds=int(spec.get("leaseDurationSeconds") or 0),
        released=str((metadata.get("annotations") or {}).get(RELEASED) or ""),
        acquired=str(spec.get("acquireTime") or ""),
        renewed=str(spec.get("renewTime") or ""),
    )
