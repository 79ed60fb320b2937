"""What join needs from outside. Kubernetes adapters live in `netboot.kube`, enrolment in `netboot.stores.enrolment`.

Every method raises `ClusterUnavailableError` (or StateUnavailableError) when it cannot tell right now.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from images.values.strict import Strict
from netboot.join.node_said import GateSaid, HealthSaid
from netboot.machines.values import AssuranceLevel


class Credential(Strict):
    """One credential per boot: what a machine's Lease says. `version`: opaque, as read; "" for a new one."""

    machine: str
    cluster: str
    node: str
    assurance: AssuranceLevel
    boot: str
    holder: str
    """Hex SHA-256 of the SPKI that the credential is for."""
    holder_spki: str
    """Base64 DER: what a restarted agent's new key must be signed by."""
    reset_count: int | None = None
    restart_count: int | None = None
    generation: int = 0
    """The enrolment's: `machine release` and `replace` raise it, and what an older one says binds nobody."""
    window: str = ""
    """Assurance level `nonce`: the window that this credential used up."""
    taints: str = ""
    """With which the node is to register, `key=value:Effect`, with commas between; admission enforces it. "": an older
    netboot wrote this, and left it to the node."""
    issued: int = 0
    """Tokens handed out for this boot. 0: claimed only; the Node of the boot before may be there still."""
    token_id: str | None = None
    """The token that is, or is about to be, in a Secret; written before the Secret, so that none is ever forgotten."""
    token_expires_ms: int | None = None
    at_ms: int
    ek_sha256: str = ""
    """Assurance level `tpm`: hex SHA-256 of the SPKI of the TPM's endorsement key that proved it."""
    left_ms: int | None = None
    """When the inventory was first seen to have the machine no more; None: it has."""
    version: str = ""


class Leases(Protocol):
    """`coordination.k8s.io/v1` Leases in our namespace, one for each machine."""

    def read(self, cluster: str, machine: str) -> Credential | None:
        """What the machine's Lease says; None: there is none."""
        ...

    def write(self, credential: Credential) -> Credential:
        """Create (version "") or update; returns it with its new version. Raises ConflictError: somebody else wrote
        since; read again."""
        ...

    def all(self) -> list[Credential]:
        """Every machine's, for lists and for cleaning up."""
        ...

    def delete(self, credential: Credential) -> None:
        """Delete it as it was read. Gone already, or written since: nothing happens."""
        ...


class Tokens(Protocol):
    """Bootstrap token Secrets: created and deleted, never read."""

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Raises ConflictError: the id is taken, mint another."""
        ...

    def delete(self, token_id: str) -> None:
        """Delete; one that is gone already is fine."""
        ...


Taints = Sequence[Mapping[str, str]]
MARK = {"netboot.dev/managed-by": "netboot"}
"""The label of a Node that the issuer may delete; admission wants it of a node that has a Lease."""


class NodeView(NamedTuple):
    """A Node. `boot_id`: the kernel's; `marked`: it has MARK; `gated`: UNCHECKED; `by_hand`: BY_HAND; `gate`: GATE;
    `cordoned_by`: who and when; `version`: opaque; `written`: our labels; `holder`: who else has taken it, in words."""

    name: str
    uid: str
    ready: bool
    boot_id: str
    created_ms: int
    ready_since_ms: int | None = None
    marked: bool = False
    gated: bool = False
    cordoned: bool = False
    taints: tuple[Mapping[str, str], ...] = ()
    health: HealthSaid | None = None
    by_hand: bool = False
    version: str = ""
    labels: Mapping[str, str] = MappingProxyType({})
    written: tuple[str, ...] = ()
    cordoned_by: str = ""
    holder: str = ""
    gate: GateSaid | None = None


class Nodes(Protocol):
    """Node objects of one cluster."""

    def node(self, name: str) -> NodeView | None:
        """The Node; None: there is none."""
        ...

    def delete(self, name: str, uid: str) -> None:
        """Delete exactly this one; may raise NodeKeptError. Gone already, or another uid by now: nothing happens."""
        ...

    def watch(self, seconds: float) -> Iterator[NodeView]:
        """All Nodes as they are, then each as it changes, for about so long; for the collector."""
        ...

    def taint(self, node: NodeView, taints: Taints, labels: Mapping[str, str] | None = None) -> NodeView:
        """Give it, as it was read, exactly these taints and of labels that we write these (None: as they are); returns
        it as it is then. Raises ConflictError: it changed since, or is gone. InvalidError: the apiserver says no."""
        ...

    def tell_gate(self, node: NodeView, said: GateSaid, at_ms: int) -> None:
        """Write the condition GATE onto it, as it was read, and nothing else. Raises as above."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A cluster, as we and its nodes reach it. `authorities`: PEM. `preflight()` raises ClusterUnavailableError where
    no tokens may be issued for it, with why. `clock_ahead_ms()`: how far the apiserver's clock is ahead of ours;
    `server_version()`: what it says that it is, like v1.34.4; both raise ClusterUnavailableError."""

    name: str
    endpoints: tuple[str, ...]
    authorities: str
    leases: Leases
    tokens: Tokens
    nodes: Nodes
    preflight: Callable[[], None]
    clock_ahead_ms: Callable[[], int]
    server_version: Callable[[], str]


class Csr(NamedTuple):
    """A CertificateSigningRequest as the apiserver recorded it. `decided`: it has Approved or Denied already.

    `credential`: hex SHA-256 of the certificate that the requester authenticated with; "": the apiserver does not say.
    `approved_ms`: when it was approved, by the apiserver's clock. `certificate`: PEM, once there is one.
    """

    name: str
    uid: str
    version: str
    signer: str
    username: str
    groups: tuple[str, ...]
    usages: tuple[str, ...]
    expiration_seconds: int | None
    pem: bytes
    decided: bool
    credential: str = ""
    certificate: bytes = b""
    approved_ms: int | None = None

    @property
    def issued(self) -> bool:
        """Whether its certificate is there."""
        return bool(self.certificate)


class CertificateRequests(Protocol):
    """CertificateSigningRequests of one cluster, for the approver."""

    def watch(self, seconds: float) -> Iterator[Csr]:
        """All requests of the two kubelet signers as they are, then each as it changes, for about so long."""
        ...

    def approve(self, csr: Csr, reason: str, message: str) -> None:
        """Approve it as it was read. Raises ConflictError: it changed since."""
        ...

    def deny(self, csr: Csr, reason: str, message: str) -> None:
        """Deny it as it was read. Raises ConflictError: it changed since."""
        ...


class Enrolment(Strict):
    """What is on record of one machine's identity. `generation` rises with every release and replacement."""

    machine: str
    ek_sha256: str | None = None
    state: Literal["none", "pending", "approved", "retired"] = "none"
    source: Literal["inventory", "imported", "first-use", ""] = ""
    generation: int = 0
    window: Literal["enrol", "boot"] | None = None
    """An operator opened it: to enrol a TPM on first use, or to join once without one."""
    window_id: str = ""
    window_until_ms: int = 0

    @property
    def approved_ek(self) -> str | None:
        """The one EK whose boots may have tokens and certificates now; None: none may (unknown, pending, retired).

        Of a register's answer, so what the inventory pins is in it. That it cannot be told now is never None: whoever
        was asked has raised CannotTellError.
        """
        return self.ek_sha256 if self.state == "approved" else None


AlertKind = Literal["window-used", "counters", "reissues", "other-key", "weaker"]
"""What may be an attack: a boot window that was used up already; a TPM that counts fewer resets; more tokens than an
agent needs; another key in the same boot; a weaker proof than before."""


class Enrolments(Protocol):
    """Enrolled EKs and windows, shared by all processes of the service; durable when a method returns."""

    def by_ek(self, ek_sha256: str) -> Enrolment | None:
        """The machine to which this EK is pinned (pending, approved or retired); None: nobody's."""
        ...

    def of(self, machine: str) -> Enrolment:
        """What is on record; state "none" where there is nothing."""
        ...

    def propose(self, machine: str, ek_sha256: str, details: str, now_ms: int) -> Enrolment:
        """Use the machine's open `enrol` window up: the EK becomes pending.

        Raises:
            RefusedError: no window is open (any more), or the EK is another machine's.
        """
        ...

    def use_window(self, machine: str, window_id: str, now_ms: int) -> bool:
        """Close a `boot` window for its first success; False: somebody was first, which is an alert."""
        ...

    def alert(self, machine: str, kind: AlertKind, message: str, now_ms: int) -> None:
        """Note what may be an attack: one alert for each kind, which counts and says the latest."""
        ...
