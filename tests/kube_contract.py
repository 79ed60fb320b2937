"""What the fake cluster and the Kubernetes adapters both do: `CASES`, run over `World`s by the test files.

`tests/contract/test_kube_ports.py` runs them over `tests.kube_fake`, `tests/cluster/test_kube_ports.py` over a real
apiserver with the accounts of `deploy/kubernetes`.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol, TypeVar

import pytest

from netboot.join.certificates import BootCertificates, IssuedCertificates
from netboot.join.control_plane import ControlPlane
from netboot.join.errors import ConflictError, NodeKeptError
from netboot.join.node_said import GateSaid
from netboot.join.ports import CertificateRequests, Credential, Csr, Leases, Nodes, NodeView, Tokens
from netboot.join.rights import POLICIES
from netboot.join.self_check import PolicyState, Preconditions
from netboot.join.signing import Signing
from tests.processes import wait_for
from tokens.bootstrap import BootstrapToken, mint, secret_manifest

T = TypeVar("T")
NODECLIENT = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
GROUP = "contract:group"
SECONDS = 180.0
"""Of a watch, against hanging alone: a controller that signs may take a minute, where it was refused."""
OPEN = GateSaid("True", "Open", "netboot's gate is open")


class World(Protocol):
    """The ports, as the processes have them, and what happens beside them."""

    leases: Leases
    tokens: Tokens
    nodes: Nodes
    """The issuer's: node, delete."""
    collector: Nodes
    """The collector's: watch."""
    requests: CertificateRequests
    preconditions: Preconditions
    certificates: IssuedCertificates
    """The approver's."""
    control_plane: ControlPlane
    """The collector's."""

    def make_control(self, name: str, *, ready: bool, etcd: bool | None) -> None:
        """A Node of a control plane is there, or changes, and so does the mirror Pod of its etcd; None: it has none."""

    def make_node(self, name: str, *, ready: bool = False, boot_id: str = "") -> None:
        """A Node is there, or changes."""

    def keep_node(self, name: str, *, kept: bool) -> None:
        """Somebody's finalizer is on it, or is taken off."""

    def submit(self, name: str, *, ours: bool = True) -> None:
        """Somebody asks for a certificate: of a kubelet's signer, or of another."""

    def touch(self, name: str) -> None:
        """Somebody else changes the request."""

    def token_ids(self) -> set[str]:
        """The bootstrap tokens that are there."""

    def bind(self, name: str, role: str, group: str) -> None:
        """An administrator binds a group to a ClusterRole."""

    def unbind(self, name: str) -> None:
        """And takes it back."""


def credential(machine: str, cluster: str = "default", **more: object) -> Credential:
    """A whole credential; `more` overrides its fields."""
    values: dict[str, object] = {
        "machine": machine,
        "cluster": cluster,
        "node": f"{machine}.example",
        "assurance": "tpm",
        "boot": "0192f0c1-2b5a-8abc-9def-0123456789ab",
        "holder": hashlib.sha256(machine.encode()).hexdigest(),
        "holder_spki": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+/==",
        "reset_count": 0,
        "restart_count": 4_294_967_295,
        "generation": 3,
        "issued": 2,
        "token_id": "abc123",
        "token_expires_ms": 1_790_000_300_000,
        "at_ms": 1_790_000_000_000,
        "ek_sha256": "e" * 64,
    }
    return Credential.model_validate(values | more)


def manifest(token: BootstrapToken) -> dict[str, object]:
    return secret_manifest(token, "contract", b"spki", datetime.now(UTC))


def until(watch: Iterator[T], right: Callable[[T], bool]) -> T:
    """The first of a watch that is right; the watch's own end is the deadline."""
    for one in watch:
        if right(one):
            return one
    raise AssertionError("the watch ended, and it did not come")


def a_machine_without_a_lease_has_no_credential(world: World) -> None:
    assert world.leases.read("default", "nobody") is None


def a_credential_comes_back_as_it_was_written(world: World) -> None:
    for number, given in enumerate(
        (
            credential("m1"),
            credential(
                "m2", reset_count=None, restart_count=None, token_id=None, token_expires_ms=None, assurance="nonce"
            ),
            credential("m3-" + "x" * 240, node="n" * 253),
            credential("Ünïcode ✓ /\n", generation=0, issued=0, at_ms=0),
        )
    ):
        written = world.leases.write(given)
        assert written.version, number
        assert written == given.model_copy(update={"version": written.version})
        assert world.leases.read(given.cluster, given.machine) == written


def machines_of_one_name_in_two_clusters_are_two(world: World) -> None:
    ours, theirs = world.leases.write(credential("twin", "a")), world.leases.write(credential("twin", "b"))
    assert world.leases.read("a", "twin") == ours
    assert world.leases.read("b", "twin") == theirs
    assert world.leases.read("c", "twin") is None


def a_lease_that_is_there_is_not_made_again(world: World) -> None:
    world.leases.write(credential("once"))
    with pytest.raises(ConflictError) as caught:
        world.leases.write(credential("once", issued=9))
    assert str(caught.value) == "the Lease of once was written by somebody else since"
    found = world.leases.read("default", "once")
    assert found is not None and found.issued == 2


def of_two_writers_one_wins(world: World) -> None:
    first = world.leases.write(credential("race"))
    second = world.leases.write(first.model_copy(update={"issued": 3}))
    assert second.version != first.version
    with pytest.raises(ConflictError) as caught:
        world.leases.write(first.model_copy(update={"issued": 4}))
    assert str(caught.value) == "the Lease of race was written by somebody else since"
    assert world.leases.read("default", "race") == second


def a_lease_that_is_gone_is_not_updated(world: World) -> None:
    with pytest.raises(ConflictError):
        world.leases.write(credential("never", version="1/0b6a0a4e-6f8f-4b2e-8a3e-6f1f0f6f0f6f"))
    assert world.leases.read("default", "never") is None


def all_credentials_are_listed(world: World) -> None:
    written = [world.leases.write(credential(f"listed-{number}")) for number in range(3)]
    found = {one.machine: one for one in world.leases.all()}
    assert [found[one.machine] for one in written] == written


def a_lease_is_deleted_as_it_was_read(world: World) -> None:
    stale = world.leases.write(credential("leaves"))
    fresh = world.leases.write(stale.model_copy(update={"left_ms": 7}))
    world.leases.delete(stale)
    assert world.leases.read("default", "leaves") == fresh
    world.leases.delete(fresh)
    assert world.leases.read("default", "leaves") is None
    world.leases.delete(fresh)


def a_token_is_made_once_and_deleted(world: World) -> None:
    token = mint()
    world.tokens.create(manifest(token))
    assert token.id in world.token_ids()
    with pytest.raises(ConflictError):
        world.tokens.create(manifest(token))
    world.tokens.delete(token.id)
    assert token.id not in world.token_ids()
    world.tokens.delete(token.id)


def a_node_is_seen_as_it_is(world: World) -> None:
    assert world.nodes.node("unseen") is None
    world.make_node("seen")
    before = world.nodes.node("seen")
    assert before is not None and before.uid and before.created_ms > 0
    assert (before.name, before.ready, before.boot_id, before.ready_since_ms) == ("seen", False, "", None)
    world.make_node("seen", ready=True, boot_id="b-1")
    after = world.nodes.node("seen")
    assert after is not None and after.ready_since_ms is not None
    assert (after.uid, after.ready, after.boot_id, after.created_ms) == (before.uid, True, "b-1", before.created_ms)


def exactly_that_node_is_deleted(world: World) -> None:
    world.make_node("doomed")
    node = world.nodes.node("doomed")
    assert node is not None
    world.nodes.delete("doomed", "another-uid")
    found = world.nodes.node("doomed")
    assert found is not None
    assert found.uid == node.uid  # a controller of the cluster may have written to it
    world.nodes.delete("doomed", node.uid)
    assert world.nodes.node("doomed") is None
    world.nodes.delete("doomed", node.uid)


def a_node_that_a_finalizer_keeps_is_not_taken_for_gone(world: World) -> None:
    """Whoever registers then adopts it, with the taints that it has."""
    world.make_node("kept")
    world.keep_node("kept", kept=True)
    node = world.nodes.node("kept")
    assert node is not None
    for _ in range(2):
        with pytest.raises(NodeKeptError) as caught:
            world.nodes.delete("kept", node.uid)
        assert str(caught.value) == (
            "the Node kept is deleted, and stays until its finalizers are taken off (example.com/kept): by whoever put "
            'them there, or `kubectl patch node kept --type=merge -p \'{"metadata":{"finalizers":null}}\'`'
        )
    world.keep_node("kept", kept=False)
    world.nodes.delete("kept", node.uid)
    assert world.nodes.node("kept") is None


def tainted(world: World, name: str, how: Callable[[NodeView], Sequence[Mapping[str, str]]]) -> NodeView:
    """It has other taints; again where a controller of the cluster wrote to it meanwhile."""
    for _ in range(20):
        node = world.nodes.node(name)
        assert node is not None
        with suppress(ConflictError):
            return world.collector.taint(node, how(node))
    raise AssertionError("somebody writes to it all the time")


def a_node_is_tainted_as_it_was_read(world: World) -> None:
    """Lists of taints are replaced whole: what somebody else added since must not be lost."""
    world.make_node("tainted")
    before = world.nodes.node("tainted")
    assert before is not None
    ours = {"key": "netboot.dev/unchecked", "value": "ChecksFailed", "effect": "NoSchedule"}
    after = tainted(world, "tainted", lambda node: [*node.taints, ours])
    assert (after.uid, after.gated, after.taints[-1]) == (before.uid, True, ours)
    found = world.nodes.node("tainted")
    assert found is not None
    assert (found.gated, ours in found.taints) == (True, True)
    with pytest.raises(ConflictError, match="the Node tainted was changed by somebody else since"):
        world.collector.taint(before, [])
    opened = tainted(world, "tainted", lambda node: [taint for taint in node.taints if taint != ours])
    assert (opened.gated, ours in opened.taints) == (False, False)
    world.nodes.delete("tainted", before.uid)
    with pytest.raises(ConflictError, match="the Node tainted was changed by somebody else since"):
        world.collector.taint(opened, [])


def told(world: World, name: str, said: GateSaid = OPEN, at_ms: int = 1_790_000_000_000) -> tuple[NodeView, NodeView]:
    """Its gate is told; it as it was before and is then."""
    for _ in range(20):
        before = world.nodes.node(name)
        assert before is not None
        with suppress(ConflictError):
            world.collector.tell_gate(before, said, at_ms)
            after = world.nodes.node(name)
            assert after is not None
            return before, after
    raise AssertionError("somebody writes to it all the time")


def a_gate_is_told_on_the_node_as_it_was_read(world: World) -> None:
    """And nothing else of its status is touched."""
    world.make_node("told", ready=True)
    shut = GateSaid("False", "Unchecked", "netboot's gate has not opened yet")
    before, after = told(world, "told", shut)
    assert (before.gate, after.gate, after.ready, after.uid) == (None, shut, True, before.uid)
    with pytest.raises(ConflictError, match="the Node told was changed by somebody else since"):
        world.collector.tell_gate(before, shut, 1_790_000_000_000)
    _, opened = told(world, "told", OPEN)
    assert (opened.gate, opened.ready, opened.ready_since_ms) == (OPEN, True, before.ready_since_ms)
    world.nodes.delete("told", opened.uid)
    with pytest.raises(ConflictError, match="the Node told was changed by somebody else since"):
        world.collector.tell_gate(opened, shut, 1_790_000_000_000)


def a_node_gets_labels_with_its_taints(world: World) -> None:
    """Those that are ours, and no other's; what is not wanted any more goes."""
    world.make_node("labelled")

    def write(labels: Mapping[str, str] | None) -> NodeView:
        for _ in range(20):
            node = world.nodes.node("labelled")
            assert node is not None
            with suppress(ConflictError):
                return world.collector.taint(node, node.taints, labels)
        raise AssertionError("somebody writes to it all the time")

    before = world.nodes.node("labelled")
    assert before is not None
    others = dict(before.labels)
    first = {"topology.kubernetes.io/zone": "a", "node-role.kubernetes.io/gpu": ""}
    assert (dict(write(first).labels), write(None).written) == (others | first, tuple(sorted(first)))
    second = {"topology.kubernetes.io/zone": "b"}
    after = write(second)
    assert (dict(after.labels), after.written) == (others | second, tuple(second))
    found = world.nodes.node("labelled")
    assert found is not None
    assert (dict(found.labels), found.written) == (others | second, tuple(second))
    gone = write({})
    assert (dict(gone.labels), gone.written) == (others, ())


def nodes_are_watched(world: World) -> None:
    world.make_node("old")
    watch = world.collector.watch(SECONDS)
    until(watch, lambda node: node.name == "old")
    world.make_node("young")
    assert not until(watch, lambda node: node.name == "young").ready
    world.make_node("young", ready=True, boot_id="b-2")
    assert until(watch, lambda node: node.name == "young" and node.ready).boot_id == "b-2"


def a_watch_ends(world: World) -> None:
    world.make_node("still")
    assert "still" in {node.name for node in world.collector.watch(0.2)}


def requests_of_the_kubelets_signers_are_watched(world: World) -> None:
    world.submit("first")
    world.submit("of-others", ours=False)
    watch = world.requests.watch(SECONDS)
    first = until(watch, lambda csr: csr.name == "first")
    assert first.pem.startswith(b"-----BEGIN CERTIFICATE REQUEST-----\n")
    assert (first.signer, first.usages) == (
        "kubernetes.io/kube-apiserver-client-kubelet",
        ("digital signature", "client auth"),
    )
    assert (first.expiration_seconds, first.decided, first.issued) == (3600, False, False)
    assert first.uid and first.version and first.username and "system:authenticated" in first.groups
    world.submit("second")
    for csr in watch:
        assert csr.name != "of-others"
        if csr.name == "second":
            return
    raise AssertionError("the second request did not come")


def the_certificates_of_a_boot_come_back_as_they_were_written(world: World) -> None:
    assert world.certificates.read("default", "m1") is None
    given = BootCertificates(
        cluster="default", machine="m1", boot="b", holder="h", generation=3, sha256={"1" * 64: 1, "2" * 64: 2}
    )
    world.certificates.write(given)
    first = world.certificates.read("default", "m1")
    assert first is not None
    assert first == given.model_copy(update={"version": first.version})
    assert world.certificates.read("default", "m2") is None
    assert world.certificates.read("other", "m1") is None
    world.certificates.write(first.model_copy(update={"sha256": {"3" * 64: 3}}))
    for stale in (given, first):
        with pytest.raises(ConflictError):
            world.certificates.write(stale)
    second = world.certificates.read("default", "m1")
    assert second is not None
    assert second.sha256 == {"3" * 64: 3}


def what_was_seen_of_the_signer_is_told_to_the_issuer(world: World) -> None:
    assert world.certificates.signing() is world.preconditions.signing() is None
    for seconds in (86_400, 3_600):
        seen = Signing(seconds=seconds, since_ms=7, request="csr-1")
        world.certificates.write_signing(seen)
        known = world.certificates.signing()
        assert known is not None and known.kept_since_ms > 0
        assert known == world.preconditions.signing() == seen.model_copy(update={"kept_since_ms": known.kept_since_ms})


def an_approved_request_is_issued(world: World) -> None:
    world.submit("good")
    watch = world.requests.watch(SECONDS)
    world.requests.approve(until(watch, lambda csr: csr.name == "good"), "NetbootAttested", "as it should be")
    there = until(watch, lambda csr: csr.name == "good" and csr.issued)
    assert there.decided and there.approved_ms


def a_denied_request_is_not(world: World) -> None:
    world.submit("bad")
    watch = world.requests.watch(SECONDS)
    world.requests.deny(until(watch, lambda csr: csr.name == "bad"), "NetbootRefused", "for a reason")
    assert not until(watch, lambda csr: csr.name == "bad" and csr.decided).issued


def a_request_that_changed_is_not_decided(world: World) -> None:
    world.submit("moving")
    csr: Csr = until(world.requests.watch(SECONDS), lambda csr: csr.name == "moving")
    world.touch("moving")
    for decide in (world.requests.approve, world.requests.deny):
        with pytest.raises(ConflictError) as caught:
            decide(csr, "Netboot", "")
        assert str(caught.value) == "the certificate request moving was changed by somebody else since"
    with pytest.raises(ConflictError):
        world.requests.approve(csr._replace(name="unheard-of"), "Netboot", "")


def the_apiserver_says_its_version_and_time(world: World) -> None:
    assert world.preconditions.server_version() == "v1.34.4"
    wait_for(lambda: abs(world.preconditions.clock_ahead_ms()) < 2_000)  # wrong by half of an answer's delay


def what_somebody_else_may_is_asked(world: World) -> None:
    question = ("create", "certificates.k8s.io", "certificatesigningrequests", "nodeclient")
    assert not world.preconditions.may("somebody", [GROUP], *question)
    assert world.preconditions.bindings_to([GROUP]) == []
    world.bind("contract-binding", NODECLIENT, GROUP)
    try:
        assert world.preconditions.may("somebody", ["x", GROUP], *question)
        assert not world.preconditions.may("somebody", ["x"], *question)
        assert world.preconditions.bindings_to(["y", GROUP]) == [("contract-binding", NODECLIENT)]
    finally:
        world.unbind("contract-binding")


def what_our_account_may_is_asked(world: World) -> None:
    can = world.preconditions.can
    assert can("create", "", "secrets", namespace="kube-system")
    assert not can("create", "", "secrets", namespace="default")
    assert not can("get", "", "secrets", namespace="kube-system")
    assert can("create", "authorization.k8s.io", "subjectaccessreviews")


def the_admission_policies_are_in_force(world: World) -> None:
    assert world.preconditions.policies() == dict.fromkeys(POLICIES, PolicyState("as shipped"))


def admission_judges_by_the_leases_as_they_are(world: World) -> None:
    for _ in range(2):  # it is there the second time
        assert world.preconditions.leases_seen().found == "current"
    assert world.leases.all() == []


def a_control_plane_is_seen_as_it_is(world: World) -> None:
    world.make_node("worker-1", ready=True)
    world.make_control("control-1", ready=True, etcd=True)
    world.make_control("control-2", ready=False, etcd=False)
    world.make_control("control-3", ready=True, etcd=None)
    assert world.control_plane.nodes() == {"control-1": True, "control-2": False, "control-3": True}
    assert [world.control_plane.etcd(f"control-{number}") for number in (1, 2, 3)] == [True, False, None]
    assert world.control_plane.etcd("worker-1") is None


CASES: list[Callable[[World], None]] = [
    a_machine_without_a_lease_has_no_credential,
    a_credential_comes_back_as_it_was_written,
    machines_of_one_name_in_two_clusters_are_two,
    a_lease_that_is_there_is_not_made_again,
    of_two_writers_one_wins,
    a_lease_that_is_gone_is_not_updated,
    all_credentials_are_listed,
    a_lease_is_deleted_as_it_was_read,
    a_token_is_made_once_and_deleted,
    a_node_is_seen_as_it_is,
    exactly_that_node_is_deleted,
    a_node_that_a_finalizer_keeps_is_not_taken_for_gone,
    a_node_is_tainted_as_it_was_read,
    a_gate_is_told_on_the_node_as_it_was_read,
    a_node_gets_labels_with_its_taints,
    nodes_are_watched,
    a_watch_ends,
    a_control_plane_is_seen_as_it_is,
    requests_of_the_kubelets_signers_are_watched,
    the_certificates_of_a_boot_come_back_as_they_were_written,
    what_was_seen_of_the_signer_is_told_to_the_issuer,
    an_approved_request_is_issued,
    a_denied_request_is_not,
    a_request_that_changed_is_not_decided,
    the_apiserver_says_its_version_and_time,
    what_somebody_else_may_is_asked,
    what_our_account_may_is_asked,
    the_admission_policies_are_in_force,
    admission_judges_by_the_leases_as_they_are,
]
