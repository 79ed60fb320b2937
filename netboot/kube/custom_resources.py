"""Custom resources of the inventory, as the account `inventory` reads them (`netboot.machines.resources`)."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from kubernetes import client

from netboot.kube.connection import Connection
from netboot.kube.errors import ClusterRefusedError, StatusError
from netboot.kube.following import watched
from netboot.kube.resources.kinds import ALL, GROUP, TIED, VERSION
from netboot.lifecycle import order_objects, rollout_objects
from netboot.machines.resources import MOST_BYTES, Changed, Listed, Resource, Same, Seen, fit


class KubeResources:
    """Those of one namespace."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection, self._namespace = connection, namespace
        self._api, self._core = client.CustomObjectsApi(connection.api), client.CoreV1Api(connection.api)

    def uid(self) -> str:
        """Of the namespace, so of which cluster it is; "": it is not there, or the account may not read it.

        Raises:
            ClusterUnavailableError.
        """
        return str(_metadata(self._read_namespace() or {}).get("uid") or "")

    def kinds(self) -> frozenset[str]:
        """Those of which objects can be made now. Of a kind whose definition is removed the API server removes all
        objects, one by one, before it says that there is no such kind; so it does of a namespace.

        Discovery tells no `create` of a definition that is terminating, and the account of before may not read its
        namespace, of which nothing is known then.
        Source: pkg/apiserver/customresource_discovery_controller.go of k8s.io/apiextensions-apiserver 0.34.

        Raises:
            ClusterUnavailableError.
        """
        namespace = self._read_namespace()
        if namespace is None or "deletionTimestamp" in _metadata(namespace):
            return frozenset()
        try:
            found = self._connection.call(self._api.get_api_resources, GROUP, VERSION, expected=(404,))
        except StatusError:
            return frozenset()
        listed = found.get("resources") if isinstance(found, dict) else None
        told = [each for each in listed or () if isinstance(each, dict)]
        can = {each.get("name") for each in told if "create" in (each.get("verbs") or ())}
        return frozenset(kind for kind, each in ALL.items() if each.plural in can)

    def _read_namespace(self) -> dict[str, Any] | None:
        """None: it is not there; empty: the account may not read it."""
        try:
            found = self._connection.call(self._core.read_namespace, self._namespace, expected=(403, 404))
        except StatusError as error:
            return {} if error.status == 403 else None
        return found if isinstance(found, dict) else {}

    def all(self, kind: str) -> tuple[Resource, ...]:
        """Those of a kind, as they are now. Raises as `watch`."""
        listed = [seen.resources for seen in self.watch(kind, 0.0) if isinstance(seen, Listed)]
        return listed[0]

    def watch(self, kind: str, seconds: float) -> Iterator[Seen]:
        """All of a kind, then what becomes of each, for about `seconds`.

        Raises:
            ClusterUnavailableError: it cannot be told, also where the API server does not have the kind.
        """
        plural, listed, size = ALL[kind].plural, list[Resource](), 0
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{self._namespace}/{plural}"
        for told in watched(self._connection, partial(self._list, plural), path, seconds):
            if told.first:
                listed, size = [], 0
            page = [resource_of(kind, thing) for thing in told.page]
            listed += page
            size += sum(each.size for each in page)
            if size > MOST_BYTES:
                raise ClusterRefusedError(f"{plural}.{GROUP} have more than {MOST_BYTES >> 20} MiB: no inventory has")
            if told.listed:
                yield Listed(tuple(listed))
            elif told.thing is not None:
                seen = _seen(kind, told.event, told.thing)
                size += seen.resource.size if isinstance(seen, Changed) else 0
                yield seen
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


def _metadata(thing: Mapping[str, Any]) -> dict[str, Any]:
    found = thing.get("metadata")
    return found if isinstance(found, dict) else {}


def _seen(kind: str, event: str, thing: dict[str, Any]) -> Seen:
    if event in ("ADDED", "MODIFIED"):
        return Changed(resource_of(kind, thing), there=True)
    if event == "DELETED":
        return Changed(resource_of(kind, thing), there=False)
    return Same()


def resource_of(kind: str, thing: Mapping[str, Any]) -> Resource:
    """An object, as the API has it, as it is kept; `kind`: what an item of a file is called.

    Raises:
        ClusterRefusedError: it has no name.
    """
    metadata = _metadata(thing)
    name, generation = metadata.get("name"), metadata.get("generation")
    if not isinstance(name, str):
        raise ClusterRefusedError(f"the apiserver sent a {ALL[kind].kind} without a name")
    found = Resource(kind=kind, name=name, shown=f"{ALL[kind].kind.lower()}/{name}", spec=thing.get("spec"))
    if kind in TIED:
        of = {"uid": str(metadata.get("uid") or ""), "generation": generation if isinstance(generation, int) else 0}
        found = found.model_copy(update=of)
    if kind == rollout_objects.KIND:
        found = found.model_copy(update={"version": str(metadata.get("resourceVersion") or "")})
    if kind == order_objects.KIND:
        found = found.model_copy(update={"status": order_objects.kept_status(thing.get("status"))})
    return fit(found)


class KubeTied(KubeResources):
    """Objects of one kind, of one namespace, each of which is an act: a hold, an order. None is taken back because a
    definition was removed and made anew: which one it is belongs to what is known of them."""

    def __init__(self, connection: Connection, namespace: str, kind: str) -> None:
        super().__init__(connection, namespace)
        self._plural = ALL[kind].plural

    def uid(self) -> str:
        """Of the namespace and of the definition.

        Raises:
            ClusterUnavailableError: one of them cannot be told.
        """
        definition = f"{self._plural}.{GROUP}"
        path = client.ApiextensionsV1Api(self._connection.api).read_custom_resource_definition
        try:
            found = self._connection.call(path, definition, expected=(403, 404))
        except StatusError as error:
            why = "may not be read" if error.status == 403 else "is not there"
            raise ClusterRefusedError(
                f"the definition {definition} {why}: apply what `netboot cluster crds` and `netboot cluster manifests "
                "--inventory` print"
            ) from None
        namespace, of = super().uid(), str(_metadata(found if isinstance(found, dict) else {}).get("uid") or "")
        if not namespace or not of:  # what is not known is equal to nothing
            raise ClusterRefusedError(
                f"the namespace {self._namespace} is not there, or may not be read: apply what `netboot cluster "
                "manifests --inventory` prints"
            )
        return f"{namespace}/{of}"
