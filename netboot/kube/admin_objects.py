"""Objects of ours in one namespace, as the API has them; and as people make them who may, by the command line.

Nothing is overwritten here: an object is made where there is none, and a status written where that is empty.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from kubernetes import client

from netboot.join.errors import ConflictError
from netboot.kube.connection import Connection
from netboot.kube.errors import REFUSALS, ClusterRefusedError, StatusError, refusal
from netboot.kube.resources.definitions import definitions
from netboot.kube.resources.kinds import GROUP, VERSION, Kind

Thing = Mapping[str, Any]
"""An object, as the API has it."""
_CRDS = "`netboot cluster crds | kubectl apply -f -`"


class AllObjects:
    """Those of one namespace, by the account of a connection."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection, self._namespace = connection, namespace
        self._api = client.CustomObjectsApi(connection.api)

    def things(self, kind: Kind) -> dict[str, Thing]:
        """All of a kind, by name.

        Raises:
            ClusterUnavailableError: also where there is no such kind.
        """
        found, _ = self._connection.pages(self._list, kind.plural)
        return {str(each["metadata"]["name"]): each for each in found}

    def _list(self, plural: str, **how: Any) -> Any:
        try:
            return self._api.list_namespaced_custom_object(GROUP, VERSION, self._namespace, plural, **how)
        except StatusError as error:
            if error.status != 404 or "_continue" in how:
                raise
            raise ClusterRefusedError(f"the API server has no {plural}.{GROUP}: apply {_CRDS}") from None


class AdminObjects(AllObjects):
    """The same, for who may make some."""

    def require_kinds(self) -> None:
        """See that the namespace is there, and the definitions of all kinds, as this version makes them: an API server
        drops keys that its definitions do not have.

        Raises:
            ClusterUnavailableError: they are not, or it cannot be told.
        """
        self._require_namespace()
        read = client.ApiextensionsV1Api(self._connection.api).read_custom_resource_definition
        for definition in definitions():
            name = definition["metadata"]["name"]
            try:
                found = self._connection.call(read, name, expected=(403, 404))
            except StatusError as error:
                if error.status == 404:
                    raise ClusterRefusedError(f"the API server has no {name}: apply {_CRDS}") from None
                raise ClusterRefusedError(
                    f"the account of {self._connection.path} may not read the definition {name}, so whether it is of "
                    "this version cannot be told: give the kubeconfig of an administrator"
                ) from None
            if not contains(found["spec"]["versions"], definition["spec"]["versions"]):
                raise ClusterRefusedError(f"the definition {name} is of another netboot: apply {_CRDS}")
            told = {each["type"]: each["status"] for each in found.get("status", {}).get("conditions", ())}
            if told.get("Established") != "True" or "deletionTimestamp" in found["metadata"]:
                raise ClusterRefusedError(
                    f"the definition {name} is not served now: `kubectl wait --for=condition=Established crd/{name}`"
                )

    def _require_namespace(self) -> None:
        read, name = client.CoreV1Api(self._connection.api).read_namespace, self._namespace
        try:
            found = self._connection.call(read, name, expected=(404,))
        except StatusError:
            raise ClusterRefusedError(f"there is no namespace {name}: `kubectl create namespace {name}`") from None
        if "deletionTimestamp" in found["metadata"]:
            raise ClusterRefusedError(f"the namespace {name} is being deleted: name another one")

    def create(self, kind: Kind, document: Thing, *, dry_run: bool = False) -> Thing:
        """Make it, of what `document` has but its status; as it is then. `dry_run`: the API server says what it would
        do, and does nothing.

        Raises:
            ConflictError: there is one already. InvalidError: this one is not taken. ClusterUnavailableError.
        """
        body = {key: value for key, value in document.items() if key != "status"}
        how: dict[str, Any] = {"dry_run": "All"} if dry_run else {}
        make = self._api.create_namespaced_custom_object
        where = GROUP, VERSION, self._namespace, kind.plural
        try:
            made = self._connection.call(make, *where, body, **how, field_validation="Strict", expected=REFUSALS)
        except StatusError as error:
            raise self._refused(error) from None
        return dict(made)

    def write_status(self, kind: Kind, thing: Thing, status: Mapping[str, Any]) -> None:
        """Give this status to an object that has none, as it was read or made.

        Raises:
            ConflictError: it is another one by now. InvalidError: it is not taken. ClusterUnavailableError.
        """
        metadata = {key: thing["metadata"][key] for key in ("uid", "resourceVersion")}
        name = quote(str(thing["metadata"]["name"]), safe="")
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{self._namespace}/{kind.plural}/{name}/status"
        try:
            self._connection.patch(path, {"metadata": metadata, "status": status}, expected=REFUSALS)
        except StatusError as error:
            raise self._refused(error) from None

    def _refused(self, error: StatusError) -> Exception:
        if error.status == 409:
            return ConflictError(f"{error.status} {error.reason}: {error.message}")
        return refusal(error, self._connection.in_words)


def contains(there: Any, ours: Any) -> bool:
    """Whether all that `ours` says is said `there`, which may say more: an API server fills in what it has defaults
    for."""
    if isinstance(ours, Mapping):
        return isinstance(there, Mapping) and all(
            key in there and contains(there[key], value) for key, value in ours.items()
        )
    if isinstance(ours, list):
        return (
            isinstance(there, list)
            and len(there) == len(ours)
            and all(contains(one, other) for one, other in zip(there, ours, strict=True))
        )
    return bool(there == ours)
