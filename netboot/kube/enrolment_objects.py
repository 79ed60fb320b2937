"""`netboot.join.enrolment_objects.EnrolmentObjects`: custom resources Enrolment, and Leases of used windows.

No list or read names a resourceVersion, so each is of what is there now
(https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list). Of an EK the API server finds
objects by `selectableFields` of the definition.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, TypeVar
from urllib.parse import quote

from kubernetes import client
from pydantic import ValidationError

from images.values.faults import first_fault
from images.values.strict import Strict
from netboot.join.enrolment import Act
from netboot.join.enrolment_documents import EnrolmentSpec, EnrolmentStatus
from netboot.join.enrolment_objects import EnrolmentObject
from netboot.join.errors import ConflictError
from netboot.kube.connection import Connection, milliseconds
from netboot.kube.errors import ClusterRefusedError, StatusError
from netboot.kube.resources.kinds import ENROLMENT, GROUP, VERSION

log = logging.getLogger(__name__)

PREFIX = "netboot-window-"
"""Of the names of Leases of used windows, by which admission knows them."""
_LABEL = "netboot.dev/window"
_MACHINE, _WINDOW, _SAID = "netboot.dev/machine", "netboot.dev/window-id", "netboot.dev/act"
_NOTICED = ("spec.retired=true", "spec.window.kind=boot")
_BOOT = "boot"
"""Who holds the Lease of a boot window: a Lease has some holder."""
S = TypeVar("S", bound=Strict)


def lease_name(machine: str, window: str) -> str:
    """Forty hex digits behind PREFIX: names of machines may be long."""
    return PREFIX + hashlib.sha256(f"{machine}\0{window}".encode()).hexdigest()[:40]


class KubeEnrolmentObjects:
    """Those of one namespace. Thread-safe."""

    def __init__(self, reach: Callable[[], Connection], namespace: str) -> None:
        """`reach` connects, or raises ClusterUnavailableError: it is asked again then."""
        self._reach, self._namespace = reach, namespace
        self._path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{ENROLMENT.plural}"
        self._where = GROUP, VERSION, namespace, ENROLMENT.plural
        self._damaged: dict[str, set[str]] = {}

    @cached_property
    def _connection(self) -> Connection:
        return self._reach()

    @cached_property
    def _api(self) -> client.CustomObjectsApi:
        return client.CustomObjectsApi(self._connection.api)

    @cached_property
    def _leases(self) -> client.CoordinationV1Api:
        return client.CoordinationV1Api(self._connection.api)

    def read(self, machine: str) -> EnrolmentObject | None:
        read = self._api.get_namespaced_custom_object
        try:
            return _object(self._connection.call(read, *self._where, machine, expected=(404,)))
        except StatusError as error:
            if error.reason != "NotFound" or ENROLMENT.plural not in error.message:
                raise self._missing() from None  # it is the kind that is not there
            return None

    def all(self, *, damaged: bool = True) -> list[EnrolmentObject]:
        things = self._list()
        return self._whole("all", things) if damaged else sorted(map(_object, things), key=lambda each: each.name)

    def noticed(self) -> list[EnrolmentObject]:
        things = [thing for field in _NOTICED for thing in self._list(field_selector=field)]
        found = {each.name: each for each in self._whole("noticed", things)}
        return [found[name] for name in sorted(found)]

    def _whole(self, asked: str, things: list[dict[str, Any]]) -> list[EnrolmentObject]:
        """One that is damaged is said, once, and left out: nobody joins by it."""
        found, damaged = list[EnrolmentObject](), set[str]()
        for thing in things:
            try:
                found.append(_object(thing))
            except ClusterRefusedError as error:
                damaged.add(str(error))
        for words in sorted(damaged - self._damaged.get(asked, set())):
            log.error("%s", words)
        self._damaged[asked] = damaged
        return sorted(found, key=lambda each: each.name)

    def approved(self, ek_sha256: str) -> list[EnrolmentObject]:
        return self._selected(f"spec.ek_sha256={ek_sha256}")

    def proposed(self, ek_sha256: str) -> list[EnrolmentObject]:
        return self._selected(f"status.proposed.ek_sha256={ek_sha256}")

    def write_spec(
        self, machine: str, spec: EnrolmentSpec, before: EnrolmentObject | None, act: Act
    ) -> EnrolmentObject:
        said = ": ".join(filter(None, (act.operator, act.reason)))
        metadata: dict[str, Any] = {"annotations": {_SAID: said or None}}
        if before is not None:
            return self._patch(before, {"metadata": metadata, "spec": spec.model_dump(mode="json")})
        metadata |= {"name": machine, "namespace": self._namespace, "annotations": {_SAID: said}}
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": ENROLMENT.kind, "metadata": metadata}
        body["spec"] = spec.model_dump(mode="json", exclude_none=True)
        try:
            make = self._api.create_namespaced_custom_object
            return _object(self._connection.call(make, *self._where, body, expected=(404, 409)))
        except StatusError as error:
            if error.status == 404:
                raise self._missing() from None
            raise ConflictError(f"{error.status} {error.reason}: {error.message}") from None

    def write_status(self, status: EnrolmentStatus, before: EnrolmentObject) -> EnrolmentObject:
        """What was shown is sent only where it is another: admission has it stay as it was written, default or not."""
        same = {"proposed"} if status.proposed == before.status.proposed else set[str]()
        return self._patch(before, {"status": status.model_dump(mode="json", exclude=same)}, "/status")

    def use_window(self, machine: str, window: str, by: str) -> bool:
        metadata = {
            "name": lease_name(machine, window),
            "namespace": self._namespace,
            "labels": {_LABEL: "used"},
            "annotations": {_MACHINE: machine, _WINDOW: window},
        }
        spec = {"holderIdentity": by or _BOOT}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        make = self._leases.create_namespaced_lease
        try:
            self._connection.call(make, self._namespace, body, expected=(409,))
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise self._connection.in_words(error) from None
            return False
        return True

    def used_by(self, machine: str, window: str) -> str | None:
        read, name = self._leases.read_namespaced_lease, lease_name(machine, window)
        try:
            return _holder(self._connection.call(read, name, self._namespace, expected=(404,)))
        except StatusError:
            return None

    def used(self) -> Mapping[tuple[str, str], str]:
        listed = self._leases.list_namespaced_lease
        leases, _ = self._connection.pages(listed, self._namespace, label_selector=_LABEL)
        found = {}
        for lease in leases:
            said = lease["metadata"].get("annotations") or {}
            found[str(said.get(_MACHINE)), str(said.get(_WINDOW))] = _holder(lease)
        return found

    def _selected(self, field: str) -> list[EnrolmentObject]:
        return sorted(map(_object, self._list(field_selector=field)), key=lambda each: each.name)

    def _list(self, **how: Any) -> list[dict[str, Any]]:
        operation = partial(self._listed, self._api.list_namespaced_custom_object, *self._where)
        return self._connection.pages(operation, **how)[0]

    def _listed(self, operation: Any, *where: str, **how: Any) -> Any:
        try:
            return operation(*where, **how)
        except StatusError as error:
            if error.status in (400, 404) and "_continue" not in how:
                raise self._missing() from None
            raise

    def _missing(self) -> ClusterRefusedError:
        return ClusterRefusedError(
            f"the apiserver has no {ENROLMENT.plural}.{GROUP} of this version: "
            "`netboot cluster crds | kubectl apply -f -`"
        )

    def _patch(self, before: EnrolmentObject, body: dict[str, Any], part: str = "") -> EnrolmentObject:
        metadata = {**body.get("metadata", {}), "uid": before.uid, "resourceVersion": before.version}
        path = f"{self._path}/{quote(before.name, safe='')}{part}"
        try:
            return _object(self._connection.patch(path, {**body, "metadata": metadata}, expected=(404, 409)))
        except StatusError as error:
            raise ConflictError(f"{error.status} {error.reason}: {error.message}") from None


def _holder(lease: dict[str, Any]) -> str:
    by = str((lease.get("spec") or {}).get("holderIdentity") or _BOOT)
    return "" if by == _BOOT else by


def _object(thing: dict[str, Any]) -> EnrolmentObject:
    metadata = thing["metadata"]
    name = str(metadata["name"])
    written = [each for each in metadata.get("managedFields") or () if each.get("subresource", "") == ""]
    times = [milliseconds(each["time"]) for each in written if each.get("time")]
    return EnrolmentObject(
        name=name,
        uid=str(metadata["uid"]),
        version=str(metadata["resourceVersion"]),
        generation=int(metadata.get("generation", 0)),
        since_ms=max(times, default=milliseconds(metadata["creationTimestamp"])),
        spec=_part(EnrolmentSpec, name, "spec", thing.get("spec") or {}),
        status=_part(EnrolmentStatus, name, "status", thing.get("status") or {}),
    )


def _part(model: type[S], name: str, part: str, said: Any) -> S:
    """Raises ClusterRefusedError: it is damaged, so nobody can tell."""
    try:
        return model.model_validate(said)
    except ValidationError as error:
        fault = first_fault(error)
        where = ".".join(map(str, (part, *fault.location)))
        raise ClusterRefusedError(f"enrolment/{name}: {where}: {fault.message}: correct it there") from None
