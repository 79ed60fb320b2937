"""The self-check against a real apiserver: with what kubeadm leaves in a cluster, and without what should be there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from lab.kube.accounts import Admin, apply_manifests, object_path
from lab.kube.cluster import Cluster
from netboot.join.leases_seen import LeasesSeen
from netboot.join.preconditions import NODECLIENT, SELFNODECLIENT, Finding, check, refusals, rights
from netboot.join.rights import POLICIES, RIGHTS
from netboot.join.self_check import PolicyState
from netboot.kube.connection import Connection
from netboot.kube.manifests import manifests
from netboot.kube.preconditions import KubePreconditions
from tests.kube_world import LEASES, RealWorld
from tests.processes import wait_for

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", autouse=True)
def put_back(control_plane: Cluster) -> Iterator[None]:
    """Tests that come later find the policies in force, not only there."""
    yield
    apply_manifests(control_plane)


@contextmanager
def bound(world: RealWorld, name: str, role: str, group: str) -> Iterator[None]:
    world.bind(name, role, group)
    try:
        yield
    finally:
        world.unbind(name)


@contextmanager
def without(admin: Admin, kind: str, name: str) -> Iterator[None]:
    """Without an object of `deploy/kubernetes`, for a while."""
    document = shipped(kind, name)
    assert admin("DELETE", object_path(document)).status_code == 200
    try:
        yield
    finally:
        admin.apply(document)


def shipped(kind: str, name: str) -> dict[str, Any]:
    return next(one for one in manifests() if (one["kind"], one["metadata"]["name"]) == (kind, name))


def test_a_cluster_with_our_files_is_fit(world: RealWorld) -> None:
    findings = check(world.preconditions)
    assert {one.outcome for one in findings} == {"ok"}, findings


@pytest.mark.parametrize("role", RIGHTS)
def test_every_account_has_its_rights(role: str, connections: dict[str, Connection]) -> None:
    assert rights(KubePreconditions(connections[role], "netboot"), role, electing=True).outcome == "ok"


def test_an_account_that_is_another_ones_is_found_out(connections: dict[str, Connection]) -> None:
    finding = rights(KubePreconditions(connections["nodes"], "netboot"), "approver")
    assert finding.outcome == "refuse"
    assert "approve signers kubernetes.io/kubelet-serving" in finding.words


def test_nodeclient_for_bootstrappers_is_refused_and_named(world: RealWorld) -> None:
    with bound(world, "kubeadm:node-autoapprove-bootstrap", NODECLIENT, "system:bootstrappers"):
        assert refusals(check(world.preconditions)) == (
            Finding(
                "first certificates",
                "refuse",
                "Kubernetes itself would approve any node's name for every holder of a bootstrap token: "
                f"ClusterRoleBinding kubeadm:node-autoapprove-bootstrap binds ClusterRole {NODECLIENT}",
                "`kubectl delete clusterrolebinding kubeadm:node-autoapprove-bootstrap`",
            ),
        )


def test_selfnodeclient_for_nodes_is_refused_and_named(world: RealWorld) -> None:
    with bound(world, "kubeadm:node-autoapprove-certificate-rotation", SELFNODECLIENT, "system:nodes"):
        (finding,) = refusals(check(world.preconditions))
    assert finding.words == (
        "a machine that was taken out of service could renew its certificate for ever: ClusterRoleBinding "
        f"kubeadm:node-autoapprove-certificate-rotation binds ClusterRole {SELFNODECLIENT}"
    )
    assert finding.remedy.endswith(
        "then `kubectl delete clusterrolebinding kubeadm:node-autoapprove-certificate-rotation`"
    )


def test_a_renewal_kept_for_one_node_is_none_of_our_business(world: RealWorld, as_admin: Admin) -> None:
    rbac = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kept-renewal-control-1"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": SELFNODECLIENT},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "system:node:control-1"}],
    }
    as_admin.apply(binding)
    try:
        assert refusals(check(world.preconditions)) == ()
    finally:
        as_admin("DELETE", object_path(binding))


def test_kubeadms_own_tokens_are_a_warning(world: RealWorld) -> None:
    group = "system:bootstrappers:kubeadm:default-node-token"
    with bound(world, "kubeadm:node-autoapprove-bootstrap", NODECLIENT, group):
        findings = check(world.preconditions)
    assert refusals(findings) == ()
    assert [one.name for one in findings if one.outcome == "warn"] == ["first certificates"]


def test_everything_for_everybody_is_refused_and_named(world: RealWorld) -> None:
    with bound(world, "permissive", NODECLIENT, "system:authenticated"):
        (finding,) = refusals(check(world.preconditions))
    assert "ClusterRoleBinding permissive" in finding.words


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_that_is_not_in_force_is_refused(world: RealWorld, as_admin: Admin, name: str) -> None:
    with without(as_admin, "ValidatingAdmissionPolicyBinding", name):
        assert world.preconditions.policies()[name] == PolicyState("unbound")
        with without(as_admin, "ValidatingAdmissionPolicy", name):
            assert world.preconditions.policies()[name] == PolicyState("absent")
            assert [one.name for one in refusals(check(world.preconditions))] == [f"admission policy {name}"]
    binding = shipped("ValidatingAdmissionPolicyBinding", name)
    as_admin.apply({**binding, "spec": binding["spec"] | {"validationActions": ["Audit"]}})
    try:
        changed = f"spec.validationActions[0] of the ValidatingAdmissionPolicyBinding {name}"
        assert world.preconditions.policies()[name] == PolicyState("different", changed)
    finally:
        as_admin.apply(binding)
    assert world.preconditions.policies()[name] == PolicyState("as shipped")
    in_force(world)


def test_an_apiserver_that_has_an_older_lease_or_none_is_found_out(
    world: RealWorld, as_admin: Admin, connections: dict[str, Connection]
) -> None:
    """Another Lease stands for what an apiserver has that no longer hears of them: only a restart would mend that."""
    seen = KubePreconditions(connections["issuer"], "netboot", pause=lambda _: None).leases_seen
    since = "2026-01-01T00:00:00.000000Z"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "netboot-older"}}
    assert as_admin("POST", LEASES, {**lease, "spec": {"renewTime": since}}).status_code == 201
    binding = shipped("ValidatingAdmissionPolicyBinding", "netboot-leases")
    nothing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    cases = {"netboot-older": LeasesSeen("older", since), "netboot-none": LeasesSeen("unknown", nothing)}
    try:
        for name, found in cases.items():
            parameter = binding["spec"]["paramRef"] | {"name": name}
            as_admin.apply({**binding, "spec": binding["spec"] | {"paramRef": parameter}})
            wait_for(partial(says, seen, found))
        with without(as_admin, "ValidatingAdmissionPolicyBinding", "netboot-leases"):
            wait_for(partial(says, seen, LeasesSeen("unjudged")))
    finally:
        as_admin.apply(binding)
    in_force(world)
    assert refusals(check(world.preconditions)) == ()


def in_force(world: RealWorld) -> None:
    """Whether what was applied again is in force, not only stored: the self-check waits for seconds, no longer."""
    wait_for(lambda: world.preconditions.leases_seen().found == "current")


def says(seen: Callable[[], LeasesSeen], what: LeasesSeen) -> bool:
    return seen() == what


ALL = {"expression": "true", "message": "x"}
EXEMPT = {"name": "exempt", "expression": "request.userInfo.username != 'system:node:control-1'"}
NOT_HERE = {"matchLabels": {"x": "y"}}


@pytest.mark.parametrize(
    ("kind", "change", "field"),
    [
        ("", {"validations": [ALL] * 5}, "spec.validations[0].expression"),
        ("", {"validations": [ALL]}, "spec.validations"),
        ("", {"failurePolicy": "Ignore"}, "spec.failurePolicy"),
        ("", {"matchConditions": [EXEMPT]}, "spec.matchConditions[0].expression"),
        ("Binding", {"matchResources": {"namespaceSelector": NOT_HERE}}, "spec.matchResources"),
        ("Binding", {"validationActions": ["Warn", "Audit"]}, "spec.validationActions"),
    ],
)
def test_whatever_is_changed_in_a_policy_is_refused_by_its_name(
    world: RealWorld, as_admin: Admin, kind: str, change: dict[str, Any], field: str
) -> None:
    """`netboot-tokens` with rules that allow everything is there and bound, and denies nothing."""
    kind = f"ValidatingAdmissionPolicy{kind}"
    document = shipped(kind, "netboot-tokens")
    as_admin.apply({**document, "spec": document["spec"] | change})
    try:
        (finding,) = refusals(check(world.preconditions))
        assert finding.words == (
            f"{field} of the {kind} netboot-tokens is not as this version of netboot ships it, so it is not known what "
            "is denied"
        )
        assert finding.remedy.endswith("apply deploy/kubernetes: `netboot cluster manifests | kubectl apply -f -`")
    finally:
        as_admin.apply(document)
    assert refusals(check(world.preconditions)) == ()


def test_a_clock_that_is_off_is_measured(connections: dict[str, Connection]) -> None:
    late = KubePreconditions(connections["issuer"], "netboot", now_ms=lambda: 1_000)
    assert late.clock_ahead_ms() > 1_000_000_000_000
    assert "clock" in {one.name for one in refusals(check(late))}
