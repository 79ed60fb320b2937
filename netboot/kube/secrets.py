"""`netboot.join.ports.Tokens`: bootstrap token Secrets in kube-system, created and deleted, never read."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kubernetes import client

from netboot.join.errors import ConflictError
from netboot.kube.connection import Connection
from netboot.kube.errors import StatusError

NAMESPACE = "kube-system"


class KubeTokens:
    """Creates and deletes the Secrets of bootstrap tokens; the account may not read them."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._api = connection, client.CoreV1Api(connection.api)

    def create(self, manifest: Mapping[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        try:
            self._connection.call(self._api.create_namespaced_secret, NAMESPACE, dict(manifest), expected=(409,))
        except StatusError:
            raise ConflictError(f"there is a Secret {name} already") from None
        finally:
            self._connection.api.last_response = None  # the answer repeats the token

    def delete(self, token_id: str) -> None:
        name = f"bootstrap-token-{token_id}"
        with suppress(StatusError):
            self._connection.call(self._api.delete_namespaced_secret, name, NAMESPACE, expected=(404,))
