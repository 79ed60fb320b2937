"""`netboot.join.certificates.IssuedCertificates`: a ConfigMap for each machine, closed to the issuer's account.

Source: https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/config-map-v1/
"""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from kubernetes import client
from pydantic import ValidationError

from netboot.join.certificates import BootCertificates
from netboot.join.errors import ConflictError
from netboot.join.signing import Signing
from netboot.kube.connection import Connection, milliseconds
from netboot.kube.errors import StatusError
from netboot.kube.leases import LABELS, lease_name, owner

log = logging.getLogger(__name__)
SIGNING = "netboot-signing"
"""The ConfigMap of what was seen of the signer; the issuer reads this one."""
_KEY = "record.json"


class _Found(NamedTuple):
    """A ConfigMap; `made_ms`: when it was, by the apiserver's clock."""

    text: str
    version: str
    made_ms: int


class KubeIssuedCertificates:
    """In the namespace of our Leases, under the same names. What cannot be understood is none: then nothing descends
    from it, and the next certificate writes it anew."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection, self._namespace = connection, namespace
        self._api = client.CoreV1Api(connection.api)

    def read(self, cluster: str, machine: str) -> BootCertificates | None:
        name = lease_name(cluster, machine)
        found = self._read(name)
        if found is None:
            return None
        version = found.version
        unknown = BootCertificates(
            cluster=cluster, machine=machine, boot="", holder="", generation=0, version=version
        )  # of no boot
        try:
            record = BootCertificates.model_validate_json(found.text)
        except ValidationError:
            log.warning("the ConfigMap %s/%s is damaged; it is written anew", self._namespace, name)
            return unknown
        same = (record.cluster, record.machine) == (cluster, machine)
        return record.model_copy(update={"version": version}) if same else unknown

    def write(self, record: BootCertificates) -> None:
        name = lease_name(record.cluster, record.machine)
        owners = [owner(record.lease, name)] if record.lease else []
        self._write(name, record.model_dump_json(exclude={"version", "lease"}), record.version, owners)

    def signing(self) -> Signing | None:
        found = self._read(SIGNING)
        if found is None:
            return None
        try:
            return Signing.model_validate_json(found.text).model_copy(update={"kept_since_ms": found.made_ms})
        except ValidationError:
            log.warning("the ConfigMap %s/%s is damaged; it is written anew", self._namespace, SIGNING)
            return None

    def write_signing(self, signing: Signing) -> None:
        found = self._read(SIGNING)
        text = signing.model_dump_json(exclude={"kept_since_ms"})
        self._write(SIGNING, text, found.version if found is not None else "")

    def _read(self, name: str) -> _Found | None:
        read = self._api.read_namespaced_config_map
        try:
            found = self._connection.call(read, name, self._namespace, expected=(404,))
        except StatusError:
            return None
        metadata = found["metadata"]
        text, version = str((found.get("data") or {}).get(_KEY, "")), str(metadata["resourceVersion"])
        return _Found(text, version, milliseconds(metadata["creationTimestamp"]))

    def _write(self, name: str, text: str, version: str, owners: Sequence[dict[str, str]] = ()) -> None:
        metadata: dict[str, Any] = {"name": name, "namespace": self._namespace, "labels": LABELS}
        metadata["ownerReferences"] = list(owners)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_KEY: text}}
        call, api = self._connection.call, self._api
        try:
            if version:
                metadata["resourceVersion"] = version
                call(api.replace_namespaced_config_map, name, self._namespace, body, expected=(404, 409))
            else:
                call(api.create_namespaced_config_map, self._namespace, body, expected=(409,))
        except StatusError:
            raise ConflictError(f"the ConfigMap {name} was written by somebody else since") from None
