"""What the self-check asks an apiserver before anything is issued; `netboot.join.preconditions` judges it."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from netboot.join.leases_seen import LeasesSeen
from netboot.join.signing import Signing


class PolicyState(NamedTuple):
    """An admission policy as it was found. unbound: no binding makes it deny; different: its rules, or its binding, are
    not as shipped, and `field` names the first that is not."""

    found: Literal["as shipped", "absent", "unbound", "different"]
    field: str = ""


class Preconditions(Protocol):
    """What the self-check asks the apiserver."""

    def server_version(self) -> str:
        """The apiserver's, as it says it: `v1.34.4`."""
        ...

    def may(self, user: str, groups: Sequence[str], verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether somebody else may: a SubjectAccessReview."""
        ...

    def can(
        self, verb: str, group: str, resource: str, subresource: str = "", namespace: str = "", name: str = ""
    ) -> bool:
        """Whether our own account may: a SelfSubjectAccessReview."""
        ...

    def bindings_to(self, subject_groups: Sequence[str]) -> list[tuple[str, str]]:
        """(ClusterRoleBinding, ClusterRole) whose subjects include one of these groups, for words."""
        ...

    def policies(self) -> dict[str, PolicyState]:
        """How each admission policy of `deploy/kubernetes` is found."""
        ...

    def leases_seen(self) -> LeasesSeen:
        """By which Leases the apiserver's admission judges, asked by one that is written for it; takes seconds where
        it is not `current`."""
        ...

    def clock_ahead_ms(self) -> int:
        """How far the apiserver's clock is ahead of ours, to about a second."""
        ...

    def signing(self) -> Signing | None:
        """What the approver has seen of the cluster's signer; None: nothing yet."""
        ...
