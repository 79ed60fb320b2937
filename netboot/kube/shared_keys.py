"""The Secret with the keys that replicas share, as their account sees it; and where each says what it has in use."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from kubernetes import client
from pydantic import ValidationError

from netboot.kube.connection import Connection
from netboot.kube.errors import ClusterRefusedError, StatusError
from netboot.kube.following import watched
from netboot.lifecycle.shared_keys import InUse, SeenSecret

RETIRED = "netboot.dev/retired"
"""Annotation of the Secret: ids of keys that it had, with blanks between them."""
MADE = "netboot.dev/made"
"""Likewise: when keys were made, as `ID=TIME`."""
APPLY = "`netboot cluster manifests --keys | kubectl apply -f -`"


def in_use_name(secret: str) -> str:
    """Of the ConfigMap that goes with a Secret."""
    return f"{secret}-in-use"


class KubeSharedKeys:
    """One Secret of one namespace; the account sees no other."""

    def __init__(self, connection: Connection, namespace: str, secret: str) -> None:
        self._connection, self._namespace, self._secret = connection, namespace, secret
        self._api = client.CoreV1Api(connection.api)

    def watch(self, seconds: float) -> Iterator[SeenSecret | None]:
        """The Secret, then what becomes of it, for about `seconds`; None: it is as it was.

        Raises:
            ClusterUnavailableError: it cannot be told, also where the Secret is not there.
        """
        path = f"/api/v1/namespaces/{self._namespace}/secrets?fieldSelector=metadata.name%3D{self._secret}"
        found: SeenSecret | None = None
        for told in watched(self._connection, self._list, path, seconds):
            found = None if told.first else found
            for thing in told.page:
                found = seen(thing)
            if told.listed:
                if found is None:
                    raise self._gone()
                yield found
            elif told.thing is not None:
                if told.event == "DELETED":
                    raise self._gone()
                yield seen(told.thing) if told.event in ("ADDED", "MODIFIED") else None

    def tell(self, replica: str, said: InUse) -> None:
        """Say that this replica has these keys in use.

        Raises:
            ClusterUnavailableError.
        """
        path = f"/api/v1/namespaces/{self._namespace}/configmaps/{in_use_name(self._secret)}"
        try:
            self._connection.patch(path, {"data": {replica: said.model_dump_json()}}, expected=(404,))
        except StatusError:
            raise self._no_config_map() from None

    def _list(self, **how: Any) -> Any:
        operation = partial(self._api.list_namespaced_secret, self._namespace)
        try:
            return operation(field_selector=f"metadata.name={self._secret}", **how)
        finally:
            self._connection.api.last_response = None  # the answer has the keys

    def read(self) -> SeenSecret:
        """As it is now.

        Raises:
            ClusterUnavailableError: it cannot be told, also where it is not there.
        """
        items, _ = self._connection.pages(self._list)
        for thing in items:
            return seen(thing)
        raise self._gone()

    def replicas(self) -> dict[str, InUse]:
        """What each replica has said of itself; of one whose words cannot be read, that it has nothing in use.

        Raises:
            ClusterUnavailableError.
        """
        name = in_use_name(self._secret)
        try:
            found = self._connection.call(self._api.read_namespaced_config_map, name, self._namespace, expected=(404,))
        except StatusError:
            raise self._no_config_map() from None
        return {str(replica): _said(text) for replica, text in (found.get("data") or {}).items()}

    def _gone(self) -> ClusterRefusedError:
        return ClusterRefusedError(
            f"there is no Secret {self._namespace}/{self._secret}: `netboot cluster keys push`, on a host that has the "
            "keys, makes it; where it was there before: `push --in-use`"
        )

    def _no_config_map(self) -> ClusterRefusedError:
        return ClusterRefusedError(
            f"the namespace {self._namespace} has no ConfigMap {in_use_name(self._secret)}, where replicas say which "
            f"keys they have: {APPLY}"
        )


def _said(text: object) -> InUse:
    try:
        return InUse.model_validate_json(str(text))
    except ValidationError:
        return InUse(at="")


def seen(thing: Mapping[str, Any]) -> SeenSecret:
    """A Secret as it was sent; what is odd in it is nothing."""
    metadata, data = thing.get("metadata") or {}, thing.get("data") or {}
    annotations = metadata.get("annotations") or {}
    return SeenSecret(
        uid=str(metadata.get("uid") or ""),
        version=str(metadata.get("resourceVersion") or ""),
        data={str(name): str(value) for name, value in data.items()},
        retired=frozenset(str(annotations.get(RETIRED) or "").split()),
        made=dict(one.split("=", 1) for one in str(annotations.get(MADE) or "").split() if "=" in one),
    )
