"""The admission policies of `deploy/kubernetes` against a real apiserver: what the rights are still good for."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lab.kube.accounts import Admin
from netboot.join.errors import ConflictError
from netboot.join.ports import MARK
from netboot.kube.connection import Connection
from netboot.kube.errors import ClusterRefusedError
from netboot.kube.secrets import KubeTokens
from tests.kube_contract import tainted
from tests.kube_world import NODES, SECRETS, RealWorld
from tokens.binding import PREFIX, binding_group
from tokens.bootstrap import BootstrapToken, mint, secret_manifest

pytestmark = pytest.mark.cluster
KUBEADM = "system:bootstrappers:kubeadm:default-node-token"
GROUPS = f"auth-extra-groups must be {PREFIX} and one binding {PREFIX}:v1:<64 hex digits>"
EXPIRY = "expiration must be there, and at most 15 minutes away by the apiserver's clock"
UNCHECKED = {"key": "netboot.dev/unchecked", "effect": "NoExecute"}
CLOSED = {"key": "netboot.dev/unchecked", "value": "ChecksFailed", "effect": "NoSchedule"}


def token_secret(token: BootstrapToken, **data: str | None) -> dict[str, Any]:
    """A good token's manifest; `data` overrides its entries, None takes one out (`_` for `-`)."""
    manifest = secret_manifest(token, "policy-node", b"spki", datetime.now(UTC), timedelta(minutes=10))
    for key, value in data.items():
        name = key.replace("_", "-")
        manifest["stringData"].pop(name, None)
        if value is not None:
            manifest["stringData"][name] = value
    return manifest


def at(minutes: float) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def refused(world: RealWorld, manifest: dict[str, Any], why: str) -> None:
    with pytest.raises(ClusterRefusedError) as caught:
        world.tokens.create(manifest)
    assert f"ValidatingAdmissionPolicy 'netboot-tokens' with binding 'netboot-tokens' denied request: {why}" in str(
        caught.value
    )


@pytest.mark.parametrize("minutes", [1, 10, 14.9])
def test_a_token_of_15_minutes_at_most_is_taken(world: RealWorld, minutes: float) -> None:
    token = mint()
    world.tokens.create(token_secret(token, expiration=at(minutes)))
    world.tokens.delete(token.id)


def test_a_token_of_16_minutes_is_refused(world: RealWorld) -> None:
    refused(world, token_secret(mint(), expiration=at(16)), EXPIRY)


def test_a_forged_creation_time_makes_no_longer_life(world: RealWorld) -> None:
    manifest = token_secret(mint(), expiration=at(60))
    manifest["metadata"]["creationTimestamp"] = at(50)
    refused(world, manifest, EXPIRY)


def test_a_token_that_never_expires_is_refused(world: RealWorld) -> None:
    refused(world, token_secret(mint(), expiration=None), EXPIRY)


@pytest.mark.parametrize("expiration", ["never", "2026-13-01T00:00:00Z", "é", ""])
def test_a_time_that_is_none_is_refused(world: RealWorld, expiration: str) -> None:
    with pytest.raises(ClusterRefusedError, match="netboot-tokens"):
        world.tokens.create(token_secret(mint(), expiration=expiration))


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_token_that_signs_is_refused(world: RealWorld, value: str) -> None:
    why = "a token of netboot's must not sign (usage-bootstrap-signing)"
    refused(world, token_secret(mint(), usage_bootstrap_signing=value), why)


@pytest.mark.parametrize(
    "groups",
    [
        None,
        PREFIX,
        f"{PREFIX},{KUBEADM}",
        f"{PREFIX},{binding_group('n', b'k')},{KUBEADM}",
        f"{PREFIX},{binding_group('n', b'k')},{binding_group('m', b'k')}",
        f"{PREFIX}2,{binding_group('n', b'k')}",
        f"{KUBEADM},{binding_group('n', b'k')}",
        f"{PREFIX},{binding_group('n', b'k')}0",
        f"{PREFIX},{PREFIX}:v1:" + "z" * 64,
        f"{PREFIX},x{binding_group('n', b'k')}",
    ],
)
def test_a_token_for_a_foreign_group_is_refused(world: RealWorld, groups: str | None) -> None:
    refused(world, token_secret(mint(), auth_extra_groups=groups), GROUPS)


@pytest.mark.parametrize("groups", [f"{PREFIX},{binding_group('n', b'k')}\n{KUBEADM}", f"{PREFIX},é"])
def test_a_group_that_is_not_printable_is_refused(world: RealWorld, groups: str) -> None:
    with pytest.raises(ClusterRefusedError, match="netboot-tokens"):
        world.tokens.create(token_secret(mint(), auth_extra_groups=groups))


@pytest.mark.parametrize("kind", ["Opaque", "kubernetes.io/dockerconfigjson", None])
def test_a_secret_of_another_type_is_refused(world: RealWorld, kind: str | None) -> None:
    manifest = token_secret(mint()) | {"type": kind}
    manifest["stringData"][".dockerconfigjson"] = "{}"
    refused(world, manifest, "netboot may have bootstrap tokens in kube-system, no other Secrets")


def test_a_token_of_a_service_account_is_refused(world: RealWorld) -> None:
    manifest = {
        "metadata": {"name": "steal", "annotations": {"kubernetes.io/service-account.name": "default"}},
        "type": "kubernetes.io/service-account-token",
    }
    with pytest.raises(ClusterRefusedError, match="netboot-tokens"):
        world.tokens.create(manifest)


@pytest.fixture(params=["issuer", "approver"])
def deleter(request: Any, connections: dict[str, Connection]) -> KubeTokens:
    return KubeTokens(connections[request.param])


@pytest.mark.parametrize(
    ("kind", "groups"),
    [
        pytest.param("Opaque", f"{PREFIX},{binding_group('n', b'k')}", id="another type"),
        pytest.param("bootstrap.kubernetes.io/token", KUBEADM, id="a token of kubeadm's"),
        pytest.param("bootstrap.kubernetes.io/token", None, id="a token without groups"),
    ],
)
def test_a_secret_of_somebody_else_is_not_deleted(
    deleter: KubeTokens, as_admin: Admin, kind: str, groups: str | None
) -> None:
    token = mint()
    manifest = token_secret(token, auth_extra_groups=groups) | {"type": kind}
    path = f"{SECRETS}/bootstrap-token-{token.id}"
    assert as_admin("POST", SECRETS, manifest).status_code == 201
    with pytest.raises(ClusterRefusedError, match="ValidatingAdmissionPolicy 'netboot-tokens'"):
        deleter.delete(token.id)
    assert as_admin("GET", path).status_code == 200
    assert as_admin("DELETE", path).status_code == 200


def test_a_token_of_ours_is_deleted_by_both(deleter: KubeTokens, world: RealWorld) -> None:
    token = mint()
    world.tokens.create(token_secret(token))
    deleter.delete(token.id)
    assert token.id not in world.token_ids()


def test_other_accounts_are_left_alone(as_admin: Admin) -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "of-others"}, "type": "Opaque"}
    assert as_admin("POST", SECRETS, manifest).status_code == 201
    assert as_admin("DELETE", f"{SECRETS}/of-others").status_code == 200


def register(as_admin: Admin, *taints: dict[str, str], name: str = "vap-1") -> Any:
    """A node registers itself, as its kubelet would."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": list(taints)}}
    return as_admin("POST", NODES, node, user=f"system:node:{name}", group="system:nodes")


@pytest.mark.parametrize(
    "taints",
    [
        (),
        ({"key": "netboot.dev/unattested", "effect": "NoSchedule"},),
        (UNCHECKED | {"effect": "PreferNoSchedule"},),
        ({"key": "netboot.dev/unchecked2", "effect": "NoSchedule"},),
    ],
    ids=["none", "another", "a weak one", "one like it"],
)
def test_a_node_without_the_taint_is_refused(as_admin: Admin, taints: tuple[dict[str, str], ...]) -> None:
    answer = register(as_admin, *taints)
    assert answer.status_code == 422
    assert answer.json()["message"] == (
        "nodes \"vap-1\" is forbidden: ValidatingAdmissionPolicy 'netboot-nodes' with binding 'netboot-nodes' denied "
        "request: a node must register with the taint netboot.dev/unchecked:NoExecute"
    )


def test_a_node_with_the_taint_registers_and_cannot_take_it_off(as_admin: Admin) -> None:
    other = {"key": "example.com/other", "effect": "NoExecute"}
    answer = register(as_admin, other, UNCHECKED)
    assert answer.status_code == 201, answer.text
    try:
        node = answer.json()
        node["spec"]["taints"] = [other]
        changed = as_admin("PUT", f"{NODES}/vap-1", node, user="system:node:vap-1", group="system:nodes")
        assert changed.status_code == 403
        assert "is not allowed to modify taints" in changed.text
    finally:
        as_admin("DELETE", f"{NODES}/vap-1")


def test_a_node_that_an_administrator_makes_needs_no_taint(as_admin: Admin) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "vap-2"}}
    assert as_admin("POST", NODES, node).status_code == 201
    assert as_admin("DELETE", f"{NODES}/vap-2").status_code == 200


@pytest.mark.parametrize(
    ("taints", "kubelet"),
    [
        ((), False),
        ((UNCHECKED | {"effect": "PreferNoSchedule"},), False),
        ((CLOSED,), True),
        ((UNCHECKED, CLOSED), True),
        ((UNCHECKED, UNCHECKED | {"effect": "NoSchedule"}), True),
    ],
    ids=["open", "a weak one", "as if closed", "twice, as if closed", "twice"],
)
def test_a_node_of_ours_begins_shut_whoever_makes_it(
    world: RealWorld, as_admin: Admin, break_glass: Admin, taints: tuple[dict[str, str], ...], kubelet: bool
) -> None:
    """`kubelet`: what `netboot-nodes` has nothing against."""
    assert world, "the manifests are applied"
    node: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "vap-3", "labels": MARK}}
    node["spec"], path = {"taints": list(taints)}, f"{NODES}?dryRun=All"
    answers = [as_admin("POST", path, node)]
    if kubelet:
        answers.append(as_admin("POST", path, node, user="system:node:vap-3", group="system:nodes"))
    why = "a Node of netboot's begins with the taint netboot.dev/unchecked:NoExecute, once and without a value"
    by = "nodes \"vap-3\" is forbidden: ValidatingAdmissionPolicy 'netboot-gate' with binding 'netboot-gate'"
    for answer in answers:
        assert (answer.status_code, answer.json()["message"]) == (422, f"{by} denied request: {why}")
    assert break_glass("POST", path, node).status_code == 201
    sound = node | {"spec": {"taints": [UNCHECKED]}}
    assert as_admin("POST", path, sound).status_code == 201


def change(ask: Admin, name: str, how: Callable[[dict[str, Any]], object], at: str = "", **who: str) -> Any:
    """The Node with what `how` makes of it; again where a controller of the cluster wrote to it meanwhile."""
    for _ in range(20):
        node = ask("GET", f"{NODES}/{name}").json()
        how(node)
        answer = ask("PUT", f"{NODES}/{name}{at}", node, **who)
        if answer.status_code != 409:
            return answer
    raise AssertionError(answer.text)


def test_a_node_that_is_full_of_taints_takes_ours_and_no_others(
    world: RealWorld, as_admin: Admin, break_glass: Admin
) -> None:
    world.make_node("vap-4")

    def fill(node: dict[str, Any], count: int) -> None:
        taints = node["spec"].setdefault("taints", [])
        taints += [{"key": f"example.com/{number}", "effect": "NoSchedule"} for number in range(len(taints), count)]

    assert change(break_glass, "vap-4", lambda node: fill(node, 18)).status_code == 200
    full = tainted(world, "vap-4", lambda node: [*node.taints, CLOSED])
    assert len(full.taints) > 16
    answer = change(as_admin, "vap-4", lambda node: fill(node, 22))
    why = "a Node of netboot's has at most 16 taints, 64 annotations and 64 conditions"
    assert (answer.status_code, why in answer.text) == (422, True)


def test_a_node_that_is_full_of_annotations_has_room_for_the_labels_of_its_place(
    world: RealWorld, as_admin: Admin
) -> None:
    """Whoever fills it keeps neither these off nor an order to reboot."""
    world.make_node("vap-5")

    def fill(characters: int) -> Any:
        annotations = {"example.com/a": "é" * (characters // 2)}
        return change(as_admin, "vap-5", lambda node: node["metadata"].update(annotations=annotations))

    answer = fill(200_000)
    assert (answer.status_code, "at most 196608 bytes together" in answer.text) == (422, True), answer.text
    assert fill(196_000).status_code == 200
    for _ in range(20):
        node = world.nodes.node("vap-5")
        assert node is not None
        with suppress(ConflictError):
            labelled = world.collector.taint(node, node.taints, {"topology.kubernetes.io/zone": "a"})
            break
    assert labelled.labels["topology.kubernetes.io/zone"] == "a"


ALONE = "netboot's nodes account changes Nodes with the label netboot.dev/managed-by=netboot alone, and leaves it there"
OTHERS = (
    "netboot's nodes account changes no taint but those under netboot.dev/, cordons nobody and writes no finalizers"
)


STATUS = "netboot's nodes account writes nothing of a Node's status but the condition netboot.dev/Gate"


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": [{"type": "Ready", "status": "True"}]},
        {"conditions": [{"type": "netboot.dev/Gate", "status": "True"}, {"type": "Ready", "$patch": "delete"}]},
        {"conditions": [{"type": "netboot.dev/Other", "status": "True"}]},
        {"addresses": [{"type": "InternalIP", "address": "192.0.2.9"}]},
        {"allocatable": {"nvidia.com/gpu": "8"}},
        {"nodeInfo": {"bootID": "another"}},
        {"capacity": None},
    ],
    ids=["Ready", "takes Ready away", "another of ours", "addresses", "room", "which boot", "takes room away"],
)
def test_of_a_status_the_nodes_account_writes_that_condition_alone(
    world: RealWorld, connections: dict[str, Connection], as_admin: Admin, status: dict[str, Any]
) -> None:
    world.make_node("vap-7")

    def patch(body: dict[str, Any]) -> None:
        connections["nodes"].patch(f"{NODES}/vap-7/status?dryRun=All", body, kind="strategic-merge-patch")

    has_room = change(as_admin, "vap-7", lambda node: node["status"].update(capacity={"cpu": "8"}), "/status")
    assert has_room.status_code == 200, has_room.text
    patch({"status": {"conditions": [{"type": "netboot.dev/Gate", "status": "True"}]}})
    with pytest.raises(ClusterRefusedError) as caught:
        patch({"status": status})
    assert f"'netboot-gate' denied request: {STATUS}" in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "body", "why"),
    [
        ({}, {"spec": {"taints": [{"key": "netboot.dev/drain", "effect": "NoExecute"}]}}, ALONE),
        ({}, {"metadata": {"labels": MARK}}, ALONE),
        (MARK, {"metadata": {"labels": dict.fromkeys(MARK)}}, ALONE),
        (MARK, {"spec": {"taints": [UNCHECKED, {"key": "example.com/x", "effect": "NoExecute"}]}}, OTHERS),
        (MARK, {"spec": {"unschedulable": True}}, OTHERS),
        (MARK, {"metadata": {"finalizers": ["example.com/x"]}}, OTHERS),
    ],
    ids=["another's", "marks another's", "gives one away", "a taint of others", "cordons", "keeps it"],
)
def test_the_nodes_account_changes_what_is_netboots_and_nothing_else(
    world: RealWorld,
    connections: dict[str, Connection],
    as_admin: Admin,
    labels: dict[str, str],
    body: dict[str, Any],
    why: str,
) -> None:
    """What it may the adapters' own tests show."""
    assert world, "the manifests are applied"
    metadata = {"name": "vap-6", "labels": labels}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [UNCHECKED]}}
    assert as_admin("POST", NODES, node).status_code == 201
    try:
        with pytest.raises(ClusterRefusedError) as caught:
            connections["nodes"].patch(f"{NODES}/vap-6?dryRun=All", body)
        by = "ValidatingAdmissionPolicy 'netboot-gate' with binding 'netboot-gate'"
        assert f"{by} denied request: {why}" in str(caught.value)
    finally:
        as_admin("DELETE", f"{NODES}/vap-6")
