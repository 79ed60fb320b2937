"""The self-check, over a cluster in memory."""

from pathlib import Path

import pytest

from lab.kube import binaries
from netboot.join.errors import ClusterUnavailableError
from netboot.join.leases_seen import LeasesSeen
from netboot.join.preconditions import (
    ADVICE,
    FIXED,
    IDENTIFIES,
    NODECLIENT,
    SELFNODECLIENT,
    UPGRADE,
    Finding,
    check,
    refusals,
    rights,
)
from netboot.join.rights import RIGHTS
from netboot.join.self_check import PolicyState
from netboot.join.signing import SIGNING_REMEDY, Signing
from tests.kube_fake import FakeCluster, FakePreconditions

DAMAGE = "more than 30 s: tokens would be expired at birth, or live too long"


@pytest.fixture
def cluster() -> FakePreconditions:
    return FakeCluster().preconditions


def found(cluster: FakePreconditions, name: str) -> Finding:
    return next(one for one in check(cluster) if one.name == name)


def test_a_sound_cluster_has_nothing_to_refuse(cluster: FakePreconditions) -> None:
    findings = check(cluster)
    assert [(one.name, one.outcome, one.words, one.remedy) for one in findings] == [
        ("version of Kubernetes", "ok", "v1.34.4", ""),
        ("clock", "ok", "ours and the apiserver's agree", ""),
        ("rights of the issuer", "ok", "the account has the 24 rights that it needs", ""),
        ("least privilege of the issuer", "ok", "the account may not read Secrets", ""),
        ("admission policy netboot-tokens", "ok", "there, bound and as shipped", ""),
        ("admission policy netboot-nodes", "ok", "there, bound and as shipped", ""),
        ("admission policy netboot-taints", "ok", "there, bound and as shipped", ""),
        ("admission policy netboot-gate", "ok", "there, bound and as shipped", ""),
        ("admission policy netboot-deletions", "ok", "there, bound and as shipped", ""),
        ("admission policy netboot-leases", "ok", "there, bound and as shipped", ""),
        ("Leases in admission", "ok", "the apiserver judges registrations by the Leases as they are", ""),
        ("first certificates", "ok", "nobody but netboot approves them", ""),
        ("renewals", "ok", "nobody but netboot approves them", ""),
        (
            "signing duration",
            "ok",
            (
                "not seen yet; the first serving certificate of a kubelet shows it. A certificate cannot be revoked, "
                "so a machine that was taken out of service ends when its last one does"
            ),
            "`--cluster-signing-duration=24h` or less, of kube-controller-manager (its default is a year)",
        ),
    ]
    assert refusals(findings) == ()


@pytest.mark.parametrize("group", ["system:bootstrappers", "system:bootstrappers:netboot", "system:authenticated"])
def test_a_binding_that_lets_any_bootstrapper_become_any_node_is_refused(
    cluster: FakePreconditions, group: str
) -> None:
    cluster.bind("kubeadm:node-autoapprove-bootstrap", NODECLIENT, group)
    assert refusals(check(cluster)) == (
        Finding(
            "first certificates",
            "refuse",
            "Kubernetes itself would approve any node's name for every holder of a bootstrap token: ClusterRoleBinding "
            "kubeadm:node-autoapprove-bootstrap binds ClusterRole "
            "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
            "`kubectl delete clusterrolebinding kubeadm:node-autoapprove-bootstrap`",
        ),
    )


@pytest.mark.parametrize("group", ["system:nodes", "system:authenticated"])
def test_a_binding_that_lets_departed_nodes_renew_is_refused(cluster: FakePreconditions, group: str) -> None:
    cluster.bind("kubeadm:node-autoapprove-certificate-rotation", SELFNODECLIENT, group)
    assert refusals(check(cluster)) == (
        Finding(
            "renewals",
            "refuse",
            "a machine that was taken out of service could renew its certificate for ever: ClusterRoleBinding "
            "kubeadm:node-autoapprove-certificate-rotation binds ClusterRole "
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            "for each node that netboot does not boot, first `kubectl create clusterrolebinding kept-renewal-<node> "
            "--clusterrole=system:certificates.k8s.io:certificatesigningrequests:selfnodeclient "
            "--user=system:node:<node>`; then "
            "`kubectl delete clusterrolebinding kubeadm:node-autoapprove-certificate-rotation`",
        ),
    )


def test_kubeadms_own_tokens_are_a_warning(cluster: FakePreconditions) -> None:
    cluster.bind("kubeadm:node-autoapprove-bootstrap", NODECLIENT, "system:bootstrappers:kubeadm:default-node-token")
    assert refusals(check(cluster)) == ()
    assert found(cluster, "first certificates") == Finding(
        "first certificates",
        "warn",
        "whoever has a token of kubeadm's can become any node, also one of netboot's: ClusterRoleBinding "
        "kubeadm:node-autoapprove-bootstrap binds ClusterRole "
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        "`kubectl delete clusterrolebinding kubeadm:node-autoapprove-bootstrap`, and `kubectl certificate approve` "
        "what `kubeadm join` asks for; or let no such token live (`kubeadm token list`)",
    )


def test_a_right_that_no_known_binding_explains_is_refused_all_the_same() -> None:
    class ByWebhook(FakePreconditions):
        def may(self, *_: object) -> bool:
            return True

    cluster = ByWebhook(FakeCluster())
    cluster.bind("ours", "system:node-bootstrapper", "system:bootstrappers:netboot")
    cluster.bind("too-much", "cluster-admin", "system:nodes")
    first, renewals = refusals(check(cluster))
    assert first.words.endswith(
        ": no ClusterRoleBinding to system:bootstrappers or system:bootstrappers:netboot or system:authenticated "
        "says so; another authorizer of the apiserver may"
    )
    assert first.remedy == "look at the apiserver's --authorization-mode and --authorization-config"
    assert renewals.words.endswith(": ClusterRoleBinding too-much binds ClusterRole cluster-admin")


@pytest.mark.parametrize(
    "version",
    ["v1.32.8", "v1.33.4", "v1.34.0", "v1.34.4", "v1.36.0", "v2.0.0", "v1.33.4+k3s1", "v1.35.0-rc.1"],
)
def test_versions_that_are_fixed(cluster: FakePreconditions, version: str) -> None:
    cluster.version = version
    assert found(cluster, "version of Kubernetes") == Finding("version of Kubernetes", "ok", version)


@pytest.mark.parametrize(
    "version",
    ["v1.32.0", "v1.32.7", "v1.33.3", "v1.33.0", "v1.34.0-rc.0", "v1.33.3-gke.1200"],
)
def test_versions_with_cve_2025_5187(cluster: FakePreconditions, version: str) -> None:
    cluster.version = version
    assert refusals(check(cluster)) == (
        Finding(
            "version of Kubernetes",
            "refuse",
            f"{version} has CVE-2025-5187: a node could delete its own Node object and come back without its taints",
            "upgrade the control plane to 1.32.8, 1.33.4, 1.34.0 or newer",
        ),
    )


@pytest.mark.parametrize("version", ["v1.31.12", "v1.31.14", "v1.30.14", "v1.9.0", "v0.9.9"])
def test_a_version_that_does_not_say_who_asks_is_refused(cluster: FakePreconditions, version: str) -> None:
    cluster.version = version
    assert refusals(check(cluster)) == (
        Finding(
            "version of Kubernetes",
            "refuse",
            f"{version} does not say with which certificate a node asks for the next one, so a key that was stolen in "
            "an earlier boot could not be told from the node's own, and no certificate is renewed",
            "upgrade the control plane to 1.32.8, 1.33.4, 1.34.0 or newer",
        ),
    )


def test_the_versions_that_are_named_are_those_that_are_let_in(cluster: FakePreconditions) -> None:
    """In the words, on the page, and in the cluster of the lab, the one that all of this was tried on."""
    first = [f"{major}.{minor}.{patch}" for (major, minor), patch in FIXED.items()]
    assert min(FIXED) == IDENTIFIES
    assert f"upgrade the control plane to {', '.join(first)}, 1.34.0 or newer" == UPGRADE
    page = (Path(__file__).parents[2] / "docs/kubernetes.md").read_text(encoding="utf-8")
    assert f"Needed: Kubernetes {', '.join(first)}, 1.34.0 or newer" in page
    assert f"All of it was tried on {binaries.VERSION} alone" in page
    cluster.version = f"v{binaries.VERSION}"
    assert refusals(check(cluster)) == ()


@pytest.mark.parametrize(
    ("seconds", "outcome", "words"),
    [
        (1800, "ok", "lives 1800 s (request csr-1)"),
        (86_400, "ok", "lives 24 h (request csr-1)"),
        (87_000, "ok", "lives 24 h (request csr-1)"),
        (87_001, "refuse", "lives 24 h (request csr-1), and 24 h is the most: it cannot be revoked"),
        (31_536_000, "refuse", "lives 8760 h (request csr-1), and 24 h is the most: it cannot be revoked"),
    ],
)
def test_how_long_certificates_live(cluster: FakePreconditions, seconds: int, outcome: str, words: str) -> None:
    cluster.cluster.certificates.seen = Signing(seconds=seconds, since_ms=0, request="csr-1")
    duration = found(cluster, "signing duration")
    assert (duration.outcome, duration.words) == (outcome, f"a certificate whose request sets no limit {words}")
    assert duration.remedy == (SIGNING_REMEDY if outcome == "refuse" else "")


@pytest.mark.parametrize("version", ["", "one", "v1.34"])
def test_a_version_that_is_none_is_refused(cluster: FakePreconditions, version: str) -> None:
    cluster.version = version
    assert [one.name for one in refusals(check(cluster))] == ["version of Kubernetes"]


@pytest.mark.parametrize(
    ("ahead", "outcome", "words"),
    [
        (9_999, "ok", "ours and the apiserver's agree"),
        (-10_001, "warn", "the apiserver's clock is 10 s behind ours"),
        (25_000, "warn", "the apiserver's clock is 25 s ahead of ours"),
        (600_000, "refuse", f"the apiserver's clock is 600 s ahead of ours, {DAMAGE}"),
        (-31_000, "refuse", f"the apiserver's clock is 31 s behind ours, {DAMAGE}"),
    ],
)
def test_clocks(cluster: FakePreconditions, ahead: int, outcome: str, words: str) -> None:
    cluster.ahead_ms = ahead
    clock = found(cluster, "clock")
    assert (clock.outcome, clock.words) == (outcome, words)
    assert clock.remedy == ("" if outcome == "ok" else "set both clocks by the same NTP servers")


def test_a_policy_that_is_missing_is_refused(cluster: FakePreconditions) -> None:
    cluster.policy_states |= {"netboot-tokens": PolicyState("absent"), "netboot-nodes": PolicyState("unbound")}
    remedy = "apply deploy/kubernetes: `netboot cluster manifests | kubectl apply -f -`"
    assert refusals(check(cluster)) == (
        Finding(
            "admission policy netboot-tokens",
            "refuse",
            "there is no ValidatingAdmissionPolicy netboot-tokens",
            remedy,
        ),
        Finding(
            "admission policy netboot-nodes",
            "refuse",
            "there is no ValidatingAdmissionPolicyBinding netboot-nodes",
            remedy,
        ),
    )


def test_a_policy_that_somebody_changed_is_refused_with_the_field(cluster: FakePreconditions) -> None:
    field = "spec.validations[1].expression of the ValidatingAdmissionPolicy netboot-tokens"
    cluster.policy_states["netboot-tokens"] = PolicyState("different", field)
    assert refusals(check(cluster)) == (
        Finding(
            "admission policy netboot-tokens",
            "refuse",
            f"{field} is not as this version of netboot ships it, so it is not known what is denied",
            "compare with `netboot cluster manifests | kubectl diff -f -`; apply deploy/kubernetes: "
            "`netboot cluster manifests | kubectl apply -f -`",
        ),
    )


HEARS_NOTHING = (
    "the apiserver no longer hears of Leases, so the taints that a machine's new one names are not enforced: it "
)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (
            LeasesSeen("older", "2026-01-01T00:00:00.000000Z"),
            HEARS_NOTHING + "judges registrations by those of 2026-01-01T00:00:00.000000Z",
        ),
        (
            LeasesSeen("unknown", "no params found"),
            HEARS_NOTHING + "does not know one that is there (no params found)",
        ),
        (
            LeasesSeen("unjudged"),
            (
                "the apiserver does not apply netboot-leases, which is there and bound, so it is not known what it "
                "denies: its admission plugin ValidatingAdmissionPolicy is off, or it no longer hears of policies"
            ),
        ),
    ],
)
def test_an_apiserver_that_judges_by_other_leases_is_refused(
    cluster: FakePreconditions, seen: LeasesSeen, words: str
) -> None:
    cluster.seen = seen
    remedy = "restart that kube-apiserver; where there are several, each of them"
    assert refusals(check(cluster)) == (Finding("Leases in admission", "refuse", words, remedy),)


def test_without_the_policy_that_tells_of_leases_nothing_is_asked_of_them(cluster: FakePreconditions) -> None:
    cluster.policy_states["netboot-leases"] = PolicyState("unbound")
    assert [one.name for one in refusals(check(cluster))] == ["admission policy netboot-leases"]
    assert "preconditions.leases_seen" not in cluster.cluster.calls


def test_missing_rights_are_named_and_nothing_more_is_asked(cluster: FakePreconditions) -> None:
    cluster.missing = {("create", "subjectaccessreviews"), ("delete", "nodes")}
    findings = check(cluster)
    assert findings[-1] == Finding(
        "rights of the issuer",
        "refuse",
        "the account may not: delete nodes, create subjectaccessreviews",
        "apply deploy/kubernetes: `netboot cluster manifests | kubectl apply -f -`",
    )
    asked = {call.split()[0] for call in cluster.cluster.calls}
    assert not asked & {"preconditions.may", "preconditions.policies", "preconditions.leases_seen"}


@pytest.mark.parametrize("role", RIGHTS)
def test_the_rights_of_each_role(cluster: FakePreconditions, role: str) -> None:
    assert rights(cluster, role).outcome == "ok"
    for right in RIGHTS[role]:
        what = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
        cluster.missing = {(right.verb, what)}
        assert str(right) in rights(cluster, role).words


def test_where_there_are_replicas_each_needs_the_right_to_its_lease(cluster: FakePreconditions) -> None:
    cluster.missing = {("patch", "leases")}
    assert rights(cluster, "approver").outcome == "ok"
    assert rights(cluster, "approver", electing=True).words == "the account may not: patch leases approver"
    assert rights(cluster, "issuer", electing=True).outcome == "ok"


def test_an_account_that_may_read_secrets_is_a_warning(cluster: FakePreconditions) -> None:
    cluster.extra = {("list", "secrets")}
    assert found(cluster, "least privilege of the issuer").outcome == "warn"


def test_a_cluster_that_does_not_answer_is_neither_fit_nor_unfit(cluster: FakePreconditions) -> None:
    cluster.cluster.down = "the apiserver lab cannot be reached"
    with pytest.raises(ClusterUnavailableError):
        check(cluster)


def test_advice_refuses_nothing_and_always_says_what_to_do() -> None:
    assert refusals(ADVICE) == ()
    assert all(one.remedy for one in ADVICE)
