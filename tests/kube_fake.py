"""A cluster in memory: every port of `netboot.join.ports` that the Kubernetes adapters have, for unit tests.

`FakeCluster()` is the stage: its attributes `leases`, `tokens`, `nodes`, `requests` and `preconditions` are what code
under test gets; its methods are what happens meanwhile. `tests/kube_contract.py` holds it to the real adapters.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

from netboot.join.certificates import BootCertificates
from netboot.join.errors import ClusterUnavailableError, ConflictError, InvalidError, NodeKeptError
from netboot.join.leases_seen import LeasesSeen
from netboot.join.node_said import GateSaid
from netboot.join.ports import Credential, Csr, NodeView
from netboot.join.rights import POLICIES
from netboot.join.self_check import PolicyState
from netboot.join.signing import Signing
from netboot.lifecycle.control_planes import ControlNode
from netboot.machines.values import UNCHECKED
from tests.kubelets import signed

Seen = TypeVar("Seen", NodeView, Csr)
KUBELET_SIGNERS = ("kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving")


@dataclass
class FakeCluster:
    """What the apiserver would hold. Set `down` to a reason, and every call raises ClusterUnavailableError with it."""

    down: str = ""
    fail_next: int = 0
    """So many calls raise ClusterUnavailableError *after* having taken effect: an answer that was lost."""
    sign: bool = True
    """Whether approved requests are issued at once, as a controller-manager would."""
    full: bool = False
    """Whether Nodes have no room for labels and annotations."""
    kept: set[str] = field(default_factory=set)
    """Names of Nodes that somebody's finalizer keeps."""
    now_ms: int = 1_767_225_600_000
    """Its clock, for what it dates itself."""
    signs_for_seconds: int = 86_400
    """As `--cluster-signing-duration` of a controller-manager."""
    secrets: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Manifests of bootstrap token Secrets, by token id."""
    credentials: dict[tuple[str, str], Credential] = field(default_factory=dict)
    decisions: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """CSR name → ("Approved" or "Denied", reason, message)."""
    calls: list[str] = field(default_factory=list)
    """Every call in order, like "tokens.create abc123": for tests of what comes before what."""
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    """Call name (as in `calls`, without its argument) → run once just before it: somebody else's write, for races."""

    def __post_init__(self) -> None:
        self.changed = threading.Condition()
        self._version = 0
        self._node_log: list[NodeView] = []
        self._csr_log: list[Csr] = []
        self._nodes: dict[str, NodeView] = {}
        self._csrs: dict[str, Csr] = {}
        self.leases = FakeLeases(self)
        self.tokens = FakeTokens(self)
        self.nodes = FakeNodes(self)
        self.requests = FakeRequests(self)
        self.preconditions = FakePreconditions(self)
        self.certificates = FakeIssuedCertificates(self)
        self.control_plane = FakeControlPlane(self)

    def make_node(
        self,
        name: str,
        *,
        ready: bool = False,
        boot_id: str = "",
        created_ms: int = 1_000,
        marked: bool = True,
        gated: bool = False,
    ) -> NodeView:
        """A kubelet registers, or its Node changes; the uid stays while the Node is there."""
        with self.changed:
            known = self._nodes.get(name)
            uid = known.uid if known else f"uid-{self.next_version()}"
            created = known.created_ms if known else created_ms
            since = created if ready else None
            view = NodeView(name, uid, ready, boot_id, created, since, marked, gated)
            return self.put_node(view._replace(taints=known.taints, health=known.health) if known else view)

    def put_node(self, view: NodeView) -> NodeView:
        """A Node is as this says, under a new version."""
        with self.changed:
            view = self._nodes[view.name] = view._replace(version=self.next_version())
            self._node_log.append(view)
            self.changed.notify_all()
            return view

    def remove_node(self, name: str) -> None:
        """Somebody else deletes the Node."""
        with self.changed:
            self._nodes.pop(name, None)

    def submit(self, csr: Csr) -> Csr:
        """A machine asks for a certificate; returns it with uid and version as recorded."""
        with self.changed:
            recorded = csr._replace(uid=f"uid-{self.next_version()}", version=self.next_version())
            self._put(recorded)
            return recorded

    def touch(self, name: str) -> Csr:
        """Somebody else changes the request, so that its version is another one."""
        with self.changed:
            changed = self._csrs[name]._replace(version=self.next_version())
            self._put(changed)
            return changed

    def request(self, name: str) -> Csr:
        """A request as it is recorded now."""
        return self._csrs[name]

    def next_version(self) -> str:
        """A new resourceVersion."""
        self._version += 1
        return str(self._version)

    def enter(self, call: str, argument: str = "") -> None:
        """Note a call; raise where the cluster is down."""
        self.calls.append(f"{call} {argument}".strip())
        happens = self.before.pop(call, None)
        if happens:
            happens()
        if self.down:
            raise ClusterUnavailableError(self.down)

    def leave(self) -> None:
        """The call has taken effect; its answer may get lost."""
        if self.fail_next:
            self.fail_next -= 1
            raise ClusterUnavailableError("the apiserver did not answer within 10 s")

    def _put(self, csr: Csr) -> None:
        self._csrs[csr.name] = csr
        if csr.signer in KUBELET_SIGNERS:
            self._csr_log.append(csr)
            self.changed.notify_all()


def _follow(
    cluster: FakeCluster,
    current: Mapping[str, Seen],
    log: list[Seen],
    seconds: float,
    wanted: Callable[[Seen], bool] = lambda _: True,
) -> Iterator[Seen]:
    """What is there, then what comes, for about so long. Both are looked at in one moment: what changed in between
    would come in neither."""
    deadline, changed = monotonic() + seconds, cluster.changed
    with changed:
        at, first = len(log), [each for each in current.values() if wanted(each)]
    yield from first
    while True:
        with changed:
            while len(log) == at and changed.wait(max(0.0, deadline - monotonic())):
                pass
            fresh = log[at:]
        if cluster.down:
            raise ClusterUnavailableError(cluster.down)
        if not fresh:
            return
        at += len(fresh)
        yield from fresh


@dataclass
class FakeLeases:
    """`netboot.join.ports.Leases`."""

    cluster: FakeCluster

    def read(self, cluster: str, machine: str) -> Credential | None:
        self.cluster.enter("leases.read", machine)
        return self.cluster.credentials.get((cluster, machine))

    def write(self, credential: Credential) -> Credential:
        self.cluster.enter("leases.write", credential.machine)
        key = (credential.cluster, credential.machine)
        with self.cluster.changed:
            known = self.cluster.credentials.get(key)
            if (known.version if known else "") != credential.version:
                raise ConflictError(f"the Lease of {credential.machine} was written by somebody else since")
            written = credential.model_copy(update={"version": self.cluster.next_version()})
            self.cluster.credentials[key] = written
        self.cluster.leave()
        return written

    def delete(self, credential: Credential) -> None:
        self.cluster.enter("leases.delete", credential.machine)
        key = (credential.cluster, credential.machine)
        known = self.cluster.credentials.get(key)
        if known is not None and known.version == credential.version:
            del self.cluster.credentials[key]
        self.cluster.leave()

    def all(self) -> list[Credential]:
        self.cluster.enter("leases.all")
        return list(self.cluster.credentials.values())


@dataclass
class FakeTokens:
    """`netboot.join.ports.Tokens`."""

    cluster: FakeCluster

    def create(self, manifest: Mapping[str, Any]) -> None:
        token_id = str(manifest["stringData"]["token-id"])
        self.cluster.enter("tokens.create", token_id)
        if token_id in self.cluster.secrets:
            raise ConflictError(f"there is a bootstrap token {token_id} already")
        self.cluster.secrets[token_id] = dict(manifest)
        self.cluster.leave()

    def delete(self, token_id: str) -> None:
        self.cluster.enter("tokens.delete", token_id)
        self.cluster.secrets.pop(token_id, None)
        self.cluster.leave()


@dataclass
class FakeControlPlane:
    """`netboot.join.control_plane.ControlPlane`."""

    cluster: FakeCluster
    there: dict[str, ControlNode] = field(default_factory=dict)

    def nodes(self) -> Mapping[str, bool]:
        self.cluster.enter("control_plane.nodes")
        return {name: each.ready for name, each in self.there.items()}

    def etcd(self, node: str) -> bool | None:
        self.cluster.enter("control_plane.etcd", node)
        return self.there[node].etcd if node in self.there else None


@dataclass
class FakeNodes:
    """`netboot.join.ports.Nodes`."""

    cluster: FakeCluster

    def node(self, name: str) -> NodeView | None:
        self.cluster.enter("nodes.node", name)
        return self.cluster._nodes.get(name)

    def delete(self, name: str, uid: str) -> None:
        self.cluster.enter("nodes.delete", name)
        known = self.cluster._nodes.get(name)
        if known and known.uid == uid:
            if name in self.cluster.kept:
                raise NodeKeptError(name, ["example.com/kept"])
            self.cluster.remove_node(name)
        self.cluster.leave()

    def taint(
        self, node: NodeView, taints: Sequence[Mapping[str, str]], labels: Mapping[str, str] | None = None
    ) -> NodeView:
        self.cluster.enter("nodes.taint", node.name)
        with self.cluster.changed:
            known = self.cluster._nodes.get(node.name)
            if known is None or (known.uid, known.version) != (node.uid, node.version):
                raise ConflictError(f"the Node {node.name} was changed by somebody else since")
            gated = any(taint["key"] == UNCHECKED for taint in taints)
            if labels is not None:
                if self.cluster.full:
                    raise InvalidError("metadata.annotations: Too long: may not be more than 262144 bytes")
                kept = {key: value for key, value in known.labels.items() if key not in known.written}
                known = known._replace(labels=kept | dict(labels), written=tuple(sorted(labels)))
            return self.cluster.put_node(known._replace(taints=tuple(taints), gated=gated))

    def tell_gate(self, node: NodeView, said: GateSaid, at_ms: int) -> None:
        self.cluster.enter("nodes.tell_gate", node.name)
        with self.cluster.changed:
            known = self.cluster._nodes.get(node.name)
            if known is None or (known.uid, known.version) != (node.uid, node.version):
                raise ConflictError(f"the Node {node.name} was changed by somebody else since")
            self.cluster.put_node(known._replace(gate=said))

    def watch(self, seconds: float) -> Iterator[NodeView]:
        self.cluster.enter("nodes.watch")
        yield from _follow(self.cluster, self.cluster._nodes, self.cluster._node_log, seconds)


@dataclass
class FakeRequests:
    """`netboot.join.ports.CertificateRequests`."""

    cluster: FakeCluster

    def watch(self, seconds: float) -> Iterator[Csr]:
        self.cluster.enter("requests.watch")
        cluster = self.cluster
        yield from _follow(cluster, cluster._csrs, cluster._csr_log, seconds, lambda csr: csr.signer in KUBELET_SIGNERS)

    def approve(self, csr: Csr, reason: str, message: str) -> None:
        self._decide("approve", "Approved", csr, reason, message)

    def deny(self, csr: Csr, reason: str, message: str) -> None:
        self._decide("deny", "Denied", csr, reason, message)

    def _decide(self, verb: str, decision: str, csr: Csr, reason: str, message: str) -> None:
        self.cluster.enter(f"requests.{verb}", csr.name)
        with self.cluster.changed:
            known = self.cluster._csrs.get(csr.name)
            if known is None or (known.uid, known.version) != (csr.uid, csr.version):
                raise ConflictError(f"the certificate request {csr.name} was changed by somebody else since")
            signs = decision == "Approved" and self.cluster.sign
            certificate = signed(known, self.cluster.signs_for_seconds) if signs else b""
            self.cluster.decisions[csr.name] = (decision, reason, message)
            approved_ms = self.cluster.now_ms if decision == "Approved" else None
            decided = known._replace(
                decided=True, certificate=certificate, approved_ms=approved_ms, version=self.cluster.next_version()
            )
            self.cluster._put(decided)
        self.cluster.leave()


@dataclass
class FakePreconditions:
    """`netboot.join.ports.Preconditions`; a cluster with nothing to find fault with, until a test says otherwise."""

    cluster: FakeCluster
    version: str = "v1.34.4"
    missing: set[tuple[str, str]] = field(default_factory=set)
    """(verb, resource or resource/subresource) that our own account may not."""
    extra: set[tuple[str, str]] = field(default_factory=set)
    """(verb, resource) that our own account may, and should not."""
    bindings: dict[str, tuple[str, str]] = field(default_factory=dict)
    """ClusterRoleBinding → (ClusterRole, group)."""
    policy_states: dict[str, PolicyState] = field(
        default_factory=lambda: dict.fromkeys(POLICIES, PolicyState("as shipped"))
    )
    seen: LeasesSeen = field(default_factory=lambda: LeasesSeen("current"))
    ahead_ms: int = 0

    def signing(self) -> Signing | None:
        self.cluster.enter("preconditions.signing")
        return self.cluster.certificates.seen

    def bind(self, name: str, role: str, group: str) -> None:
        """An administrator binds a group to a ClusterRole of Kubernetes' own, like `…:nodeclient`."""
        self.bindings[name] = (role, group)

    def unbind(self, name: str) -> None:
        """And takes it back."""
        del self.bindings[name]

    def server_version(self) -> str:
        self.cluster.enter("preconditions.server_version")
        return self.version

    def may(self, user: str, groups: Sequence[str], verb: str, group: str, resource: str, subresource: str) -> bool:
        self.cluster.enter("preconditions.may", subresource or resource)
        role = f"system:{group}:{resource}:{subresource}"
        return verb == "create" and any(bound[0] == role and bound[1] in groups for bound in self.bindings.values())

    def can(
        self, verb: str, group: str, resource: str, subresource: str = "", namespace: str = "", name: str = ""
    ) -> bool:
        self.cluster.enter("preconditions.can", f"{verb} {resource}")
        what = (verb, f"{resource}/{subresource}" if subresource else resource)
        return what in self.extra or (what not in self.missing and not _never(verb, resource, namespace))

    def bindings_to(self, subject_groups: Sequence[str]) -> list[tuple[str, str]]:
        self.cluster.enter("preconditions.bindings_to")
        return [(name, role) for name, (role, group) in self.bindings.items() if group in subject_groups]

    def policies(self) -> dict[str, PolicyState]:
        self.cluster.enter("preconditions.policies")
        return dict(self.policy_states)

    def leases_seen(self) -> LeasesSeen:
        self.cluster.enter("preconditions.leases_seen")
        return self.seen

    def clock_ahead_ms(self) -> int:
        self.cluster.enter("preconditions.clock_ahead_ms")
        return self.ahead_ms


@dataclass
class FakeIssuedCertificates:
    """`netboot.join.certificates.IssuedCertificates`."""

    cluster: FakeCluster
    records: dict[tuple[str, str], BootCertificates] = field(default_factory=dict)
    seen: Signing | None = None

    def read(self, cluster: str, machine: str) -> BootCertificates | None:
        self.cluster.enter("certificates.read", machine)
        return self.records.get((cluster, machine))

    def write(self, record: BootCertificates) -> None:
        self.cluster.enter("certificates.write", record.machine)
        with self.cluster.changed:
            known = self.records.get((record.cluster, record.machine))
            if (known.version if known else "") != record.version:
                raise ConflictError(f"the ConfigMap of {record.machine} was written by somebody else since")
            written = record.model_copy(update={"version": self.cluster.next_version(), "lease": ""})
            self.records[record.cluster, record.machine] = written
        self.cluster.leave()

    def signing(self) -> Signing | None:
        self.cluster.enter("certificates.signing")
        return self.seen

    def write_signing(self, signing: Signing) -> None:
        self.cluster.enter("certificates.write_signing")
        made_ms = self.cluster.now_ms if self.seen is None else self.seen.kept_since_ms
        self.seen = signing.model_copy(update={"kept_since_ms": made_ms})
        self.cluster.leave()


def _never(verb: str, resource: str, namespace: str) -> bool:
    """What no account of ours may, where `deploy/kubernetes` is as shipped."""
    return resource == "secrets" and (verb not in ("create", "delete") or namespace != "kube-system")
