"""`netboot.join.ports.Preconditions`."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

from kubernetes import client

from netboot.join.errors import ClusterUnavailableError
from netboot.join.leases_seen import LeasesSeen
from netboot.join.rights import POLICIES
from netboot.join.self_check import PolicyState
from netboot.join.signing import Signing
from netboot.kube.admission import KubeLeasesSeen
from netboot.kube.certificates import KubeIssuedCertificates
from netboot.kube.connection import Connection
from netboot.kube.errors import StatusError
from netboot.kube.manifests import manifests


class KubePreconditions:
    """What the self-check asks one apiserver.

    `now_ms`: the clock that is compared with the apiserver's; `pause`: how so many seconds are waited.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        pause: Callable[[float], object] = lambda seconds: threading.Event().wait(seconds),
    ) -> None:
        self._connection, self._namespace, self._now_ms = connection, namespace, now_ms
        self._access = client.AuthorizationV1Api(connection.api)
        self._rbac = client.RbacAuthorizationV1Api(connection.api)
        self._admission = client.AdmissionregistrationV1Api(connection.api)
        self._leases_seen = KubeLeasesSeen(connection, namespace, now_ms, pause)

    def server_version(self) -> str:
        return str(self._connection.get("/version").body.get("gitVersion", ""))

    def may(self, user: str, groups: Sequence[str], verb: str, group: str, resource: str, subresource: str) -> bool:
        asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
        spec = {"user": user, "groups": list(groups), "resourceAttributes": asked}
        return self._review(self._access.create_subject_access_review, "SubjectAccessReview", spec)

    def can(
        self, verb: str, group: str, resource: str, subresource: str = "", namespace: str = "", name: str = ""
    ) -> bool:
        asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
        spec = {"resourceAttributes": {**asked, "namespace": namespace, "name": name}}
        return self._review(self._access.create_self_subject_access_review, "SelfSubjectAccessReview", spec)

    def bindings_to(self, subject_groups: Sequence[str]) -> list[tuple[str, str]]:
        bindings, _ = self._connection.pages(self._rbac.list_cluster_role_binding)
        return [
            (str(binding["metadata"]["name"]), str(binding["roleRef"]["name"]))
            for binding in bindings
            if any(
                subject.get("kind") == "Group" and subject.get("name") in subject_groups
                for subject in binding.get("subjects") or ()
            )
        ]

    def policies(self) -> dict[str, PolicyState]:
        """Compared word for word, without what the apiserver fills in by itself."""
        shipped = {
            (document["kind"], document["metadata"]["name"]): document.get("spec")
            for document in manifests(self._namespace)
        }
        return {name: self._policy(shipped, name) for name in POLICIES}

    def _policy(self, shipped: Mapping[tuple[str, str], Any], name: str) -> PolicyState:
        policy = self._spec(self._admission.read_validating_admission_policy, name)
        binding = self._spec(self._admission.read_validating_admission_policy_binding, name)
        if policy is None:
            return PolicyState("absent")
        if binding is None:
            return PolicyState("unbound")
        for kind, live in (("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding)):
            field = difference(shipped[(kind, name)], live, "spec")
            if field is not None:
                return PolicyState("different", f"{field} of the {kind} {name}")
        return PolicyState("as shipped")

    def leases_seen(self) -> LeasesSeen:
        return self._leases_seen()

    def clock_ahead_ms(self) -> int:
        """The `Date` of an answer has whole seconds: their middle is taken."""
        before = self._now_ms()
        date = self._connection.get("/version").date
        after = self._now_ms()
        with suppress(ValueError):
            return round(parsedate_to_datetime(date).timestamp() * 1000) + 500 - (before + after) // 2
        raise ClusterUnavailableError("the apiserver's answers have no Date: its clock cannot be told")

    def signing(self) -> Signing | None:
        return KubeIssuedCertificates(self._connection, self._namespace).signing()

    def _review(self, operation: Callable[..., Any], kind: str, spec: dict[str, Any]) -> bool:
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
        return self._connection.call(operation, body)["status"].get("allowed") is True

    def _spec(self, operation: Callable[..., Any], name: str) -> dict[str, Any] | None:
        try:
            policy = self._connection.call(operation, name, expected=(404,))
        except StatusError:
            return None
        return dict(policy["spec"])


_DEFAULTS: dict[str, Any] = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}, "scope": "*"}
"""What the apiserver adds where a policy leaves it out (k8s.io/api/admissionregistration/v1)."""


def difference(shipped: Any, live: Any, at: str) -> str | None:
    """The first field, at or below `at`, that an object of the apiserver has otherwise than `shipped`.

    None: all are the same, but for what the apiserver fills in by itself.
    """
    if isinstance(shipped, dict) and isinstance(live, dict):
        for key in sorted(shipped.keys() | live.keys()):
            field = f"{at}.{key}"
            if key not in shipped and _DEFAULTS.get(key) != live[key]:
                return field
            if key in shipped and (found := difference(shipped[key], live.get(key), field)) is not None:
                return found
        return None
    if isinstance(shipped, list) and isinstance(live, list):
        if len(shipped) != len(live):
            return at
        pairs = enumerate(zip(shipped, live, strict=True))
        fields = (difference(one, other, f"{at}[{index}]") for index, (one, other) in pairs)
        return next((field for field in fields if field is not None), None)
    return None if shipped == live else at
