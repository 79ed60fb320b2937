"""By which Leases an apiserver's admission judges: asked by a Lease that is written, and by dry runs on it.

An apiserver of which no policy's binding wants Leases for parameters for a second no longer hears of them until it
starts anew, and says nothing (https://github.com/kubernetes/kubernetes/issues/130887). The policy `netboot-leases`
refuses every dry run on the Lease `netboot-admission`, and says what of it that apiserver has.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from kubernetes import client

from netboot.join.errors import ClusterUnavailableError
from netboot.join.leases_seen import LeasesSeen
from netboot.join.rights import TELLS_OF_LEASES
from netboot.kube.connection import Connection
from netboot.kube.errors import StatusError

NAME = "netboot-admission"
"""No Lease of a machine: it has no label, so neither `KubeLeases` nor the policy `netboot-taints` sees it."""
PAUSES = tuple(0.02 * 2**tried for tried in range(8))
"""Seconds before each question, 5.1 in all: of a Lease an apiserver hears within milliseconds, of a policy that was
just applied within a second or two."""
_SAID = re.compile(r"known here as of (\S+), resourceVersion (\S+)$")


class KubeLeasesSeen:
    """Asks one apiserver. `pause`: how so many seconds are waited."""

    def __init__(
        self, connection: Connection, namespace: str, now_ms: Callable[[], int], pause: Callable[[float], object]
    ) -> None:
        self._connection, self._namespace, self._now_ms, self._pause = connection, namespace, now_ms, pause
        self._api = client.CoordinationV1Api(connection.api)

    def __call__(self) -> LeasesSeen:
        """Any number may ask at once: what is compared is the version that is there, whoever wrote it.

        Raises:
            ClusterUnavailableError: it cannot be told.
        """
        seen, refused = None, self._write()
        for seconds in PAUSES:
            self._pause(seconds)
            refused = self._write() if refused else None
            seen = refused or self._ask() or seen
            if seen is not None and seen.found == "current":
                return seen
        if seen is None:
            raise ClusterUnavailableError(f"the Lease {self._namespace}/{NAME} is changed or deleted all the time")
        return seen

    def _write(self) -> LeasesSeen | None:
        """A new version of it, by us or by another who asks; returns what refused it.

        An apiserver that knows nothing of it refuses whatever changes it.
        """
        moment = datetime.fromtimestamp(self._now_ms() / 1000, UTC).isoformat(timespec="microseconds")
        spec = {"holderIdentity": "netboot", "renewTime": moment.replace("+00:00", "Z")}
        lease = self._read()
        if lease is not None:
            refusal = self._replace({**lease, "spec": spec})
            return _unknown(refusal) if refusal is not None and refusal.status == 422 else None
        metadata = {"name": NAME, "namespace": self._namespace}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        with suppress(StatusError):
            self._connection.call(self._api.create_namespaced_lease, self._namespace, body, expected=(409,))
        return None

    def _ask(self) -> LeasesSeen | None:
        """What the apiserver has of it; None: somebody changed it meanwhile, or deleted it, and it is written anew."""
        lease = self._read()
        if lease is None:
            return self._write()
        refusal = self._replace(lease, dry_run="All")
        if refusal is None:
            return LeasesSeen("unjudged")
        if refusal.status != 422:
            return None
        said = _SAID.search(refusal.message)
        if said is None:
            return _unknown(refusal)
        return LeasesSeen("current" if said[2] == lease["metadata"]["resourceVersion"] else "older", said[1])

    def _read(self) -> dict[str, Any] | None:
        with suppress(StatusError):
            read = self._api.read_namespaced_lease
            return dict(self._connection.call(read, NAME, self._namespace, expected=(404,)))
        return None

    def _replace(self, lease: dict[str, Any], **how: Any) -> StatusError | None:
        """Of that version and uid; returns why it was not done: gone (404), changed since (409), or refused (422)."""
        try:
            replace = self._api.replace_namespaced_lease
            self._connection.call(replace, NAME, self._namespace, lease, expected=(404, 409, 422), **how)
        except StatusError as error:
            return error
        return None


def _unknown(refusal: StatusError) -> LeasesSeen:
    """Raises ClusterUnavailableError: it is not the policy that refuses, but something of the site's own."""
    policy, _, said = refusal.message.rpartition("denied request: ")
    if f"'{TELLS_OF_LEASES}'" not in policy:
        raise ClusterUnavailableError(f"a change of the Lease {NAME} is refused, and not by us: {refusal.message}")
    return LeasesSeen("unknown", said)
