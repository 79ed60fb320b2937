"""The Secret with the keys that replicas share, as somebody sees it who may write it: people, by the command line."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from netboot.kube.connection import Connection
from netboot.kube.errors import ClusterRefusedError, StatusError
from netboot.kube.leases import LABELS
from netboot.kube.shared_keys import MADE, RETIRED, KubeSharedKeys, in_use_name
from netboot.lifecycle.shared_keys import SeenSecret


def manifest(namespace: str, secret: str, contents: Mapping[str, bytes]) -> dict[str, Any]:
    """The Secret, whole."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret, "namespace": namespace, "labels": LABELS},
        "type": "Opaque",
        "data": _encoded(contents),
    }


class SharedKeysAdmin(KubeSharedKeys):
    """The same Secret, written."""

    def __init__(self, connection: Connection, namespace: str, secret: str) -> None:
        super().__init__(connection, namespace, secret)
        self._path = f"/api/v1/namespaces/{namespace}/secrets"

    def create(self, contents: Mapping[str, bytes]) -> bool:
        """Make it; whether it was not there.

        Raises:
            ClusterUnavailableError: also where the namespace is not there.
        """
        document = manifest(self._namespace, self._secret, contents)
        try:
            self._connection.call(self._api.create_namespaced_secret, self._namespace, document, expected=(404, 409))
        except StatusError as error:
            if error.status == 409:
                return False
            raise ClusterRefusedError(
                f"there is no namespace {self._namespace}: `kubectl create namespace {self._namespace}`"
            ) from None
        finally:
            self._connection.api.last_response = None  # the answer repeats the keys
        return True

    def change(
        self, seen: SeenSecret, contents: Mapping[str, bytes], retired: Iterable[str], made: Mapping[str, str]
    ) -> None:
        """Put these files in the place of those that `seen` had.

        Raises:
            ClusterUnavailableError: also where somebody else changed it since it was seen.
        """
        annotations = {RETIRED: " ".join(sorted(retired)), MADE: " ".join(f"{key}={at}" for key, at in made.items())}
        metadata = {"uid": seen.uid, "resourceVersion": seen.version, "annotations": annotations}
        body = {"metadata": metadata, "data": _encoded(contents)}
        try:
            self._connection.patch(f"{self._path}/{self._secret}", body, expected=(404, 409))
        except StatusError:
            raise ClusterRefusedError(
                f"the Secret {self._namespace}/{self._secret} was changed by somebody else meanwhile, and nothing was "
                "done: look at `netboot cluster keys show`, and give the command again"
            ) from None

    def forget(self, replica: str) -> None:
        """Take out what a replica said; it says it again, if there is one.

        Raises:
            ClusterUnavailableError.
        """
        path = f"/api/v1/namespaces/{self._namespace}/configmaps/{in_use_name(self._secret)}"
        self._connection.patch(path, {"data": {replica: None}})


def _encoded(contents: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in contents.items()}
