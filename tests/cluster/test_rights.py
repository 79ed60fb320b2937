"""The rights of `deploy/kubernetes`: each is needed by a named operation, and nothing beyond is given."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from netboot.join.certificates import BootCertificates
from netboot.join.errors import ElectionRefusedError
from netboot.join.node_drains import Pod
from netboot.join.node_events import NodeEvent
from netboot.join.ports import Csr
from netboot.join.rights import CSR_GROUP, CSRS, ELECTING, ELECTIONS, OURS, POLICIES, RIGHTS, Right
from netboot.kube.connection import Connection
from netboot.kube.errors import ClusterRefusedError
from netboot.kube.manifests import manifests
from netboot.kube.preconditions import KubePreconditions
from netboot.lifecycle.reasons import ConditionType, Reason
from tests import kube_world as at
from tests.kube_contract import credential, manifest, tainted, told, until
from tests.kube_world import RealWorld
from tests.processes import wait_for
from tokens.bootstrap import mint

pytestmark = pytest.mark.cluster
KINDS = {"Role", "ClusterRole"}
PLACES = {OURS: "netboot", ELECTIONS: "netboot-leaders"}
ALL = {role: (*rights, *ELECTING.get(role, ())) for role, rights in RIGHTS.items()}


@pytest.fixture(scope="module")
def users(control_plane: Cluster, accounts: dict[str, Path]) -> Iterator[dict[str, Admin]]:
    """Each account by plain HTTP, with its own token."""
    opened = {
        role: Admin(control_plane, yaml.safe_load(path.read_text())["users"][0]["user"]["token"])
        for role, path in accounts.items()
    }
    yield opened
    for one in opened.values():
        one.close()


def atoms(rule: dict[str, Any]) -> list[dict[str, Any]]:
    """A rule as rules of one verb, one resource and at most one name each."""
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": [verb]} | ({"resourceNames": [name]} if name else {})
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or [""]
    ]


def atom(right: Right) -> dict[str, Any]:
    resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
    found = {"apiGroups": [right.group], "resources": [resource], "verbs": [right.verb]}
    return found | ({"resourceNames": [right.name]} if right.name else {})


def grants(role: str, right: Right) -> dict[str, Any]:
    """The Role or ClusterRole of the shipped files that grants a right to an account."""
    namespace = PLACES.get(right.namespace, right.namespace)
    for one in manifests():
        if one["kind"] in KINDS and one["metadata"] == {"name": f"netboot-{role}"} | (
            {"namespace": namespace} if namespace else {}
        ):
            return one
    raise AssertionError(f"no role grants {right}")


def a_request(world: RealWorld, signer: str) -> Csr:
    world.submit_to(signer, "wanted")
    return until(world.requests.watch(180), lambda csr: csr.name == "wanted")


def decide(signer: str) -> Callable[[RealWorld], Callable[[], object]]:
    def prepare(world: RealWorld) -> Callable[[], object]:
        csr = a_request(world, signer)
        return lambda: world.requests.approve(csr, "Netboot", "")

    return prepare


def update_a_lease(world: RealWorld) -> Callable[[], object]:
    known = world.leases.write(credential("known"))
    return lambda: world.leases.write(known)


def delete_a_lease(world: RealWorld) -> Callable[[], object]:
    known = world.leases.write(credential("gone"))
    return lambda: world.leases.delete(known)


RECORD = BootCertificates(cluster="c", machine="m", boot="b", holder="h", generation=0)


def update_a_record(world: RealWorld) -> Callable[[], object]:
    world.certificates.write(RECORD)
    known = world.certificates.read("c", "m")
    assert known is not None
    return lambda: world.certificates.write(known)


WATCHED = 3.0
"""Seconds: what comes first, a list, is to be over by then, or nothing is watched."""


def watch_requests(world: RealWorld) -> Callable[[], object]:
    return lambda: list(world.requests.watch(WATCHED))


EVENT = NodeEvent("n", "", ConditionType.BOOTED, "False", Reason.STUCK, "a note", 1_767_225_600_000)


def count_an_event(world: RealWorld) -> Callable[[], object]:
    name = world.events.create(EVENT)
    return lambda: world.events.count(name, 2, EVENT.at_ms)


def taint_a_node(world: RealWorld) -> Callable[[], object]:
    world.make_node("tainted")
    return lambda: tainted(world, "tainted", lambda node: node.taints)


POD = Pod("default", "nobody", "u", "ReplicaSet", mirror=False, local=False, over=False, leaving=False)


def tell_a_gate(world: RealWorld) -> Callable[[], object]:
    world.make_node("told")
    return lambda: told(world, "told")


def watch_nodes(world: RealWorld) -> Callable[[], object]:
    return lambda: list(world.collector.watch(WATCHED))


Prepare = Callable[[RealWorld], Callable[[], object]]


def electing(role: str) -> list[tuple[Prepare, Right]]:
    """Each looks at the Lease of its own kind, and writes it."""

    def write(world: RealWorld) -> Callable[[], object]:
        lease = world.elections[role].read()._replace(holder="a_1", seconds=15)
        return lambda: world.elections[role].write(lease)

    look, change = ELECTING[role]
    return [(lambda world: lambda: world.elections[role].read(), look), (write, change)]


NEEDED: dict[str, list[tuple[Prepare, Right]]] = {
    "issuer": [
        (lambda w: lambda: w.tokens.create(manifest(mint())), Right("create", "", "secrets", namespace="kube-system")),
        (lambda w: lambda: w.tokens.delete("abc123"), Right("delete", "", "secrets", namespace="kube-system")),
        (lambda w: lambda: w.leases.read("default", "m"), Right("get", at.LEASE_GROUP, "leases", namespace=OURS)),
        (lambda w: lambda: w.leases.all(), Right("list", at.LEASE_GROUP, "leases", namespace=OURS)),
        (lambda w: lambda: w.leases.write(credential("n")), Right("create", at.LEASE_GROUP, "leases", namespace=OURS)),
        (update_a_lease, Right("update", at.LEASE_GROUP, "leases", namespace=OURS)),
        (delete_a_lease, Right("delete", at.LEASE_GROUP, "leases", namespace=OURS)),
        (lambda w: lambda: w.nodes.node("n"), Right("get", "", "nodes")),
        (lambda w: lambda: w.nodes.delete("n", "u"), Right("delete", "", "nodes")),
        (
            lambda w: lambda: w.preconditions.may("u", [], "get", "", "pods", ""),
            Right("create", "authorization.k8s.io", "subjectaccessreviews"),
        ),
        (
            lambda w: lambda: w.preconditions.bindings_to(["g"]),
            Right("list", "rbac.authorization.k8s.io", "clusterrolebindings"),
        ),
        (
            lambda w: lambda: w.preconditions.signing(),
            Right("get", "", "configmaps", namespace=OURS, name="netboot-signing"),
        ),
        *(
            (lambda w: lambda: w.preconditions.policies(), Right("get", at.ADMISSION_GROUP, resource, name=name))
            for resource in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
            for name in POLICIES
        ),
    ],
    "approver": [
        (watch_requests, Right("list", CSR_GROUP, CSRS)),
        (watch_requests, Right("watch", CSR_GROUP, CSRS)),
        (decide(at.CLIENT_SIGNER), Right("update", CSR_GROUP, CSRS, "approval")),
        (decide(at.CLIENT_SIGNER), Right("approve", CSR_GROUP, "signers", name=at.CLIENT_SIGNER)),
        (decide(at.SERVING_SIGNER), Right("approve", CSR_GROUP, "signers", name=at.SERVING_SIGNER)),
        (lambda w: lambda: w.served.delete("abc123"), Right("delete", "", "secrets", namespace="kube-system")),
        (lambda w: lambda: w.looked_up.read("default", "m"), Right("get", at.LEASE_GROUP, "leases", namespace=OURS)),
        (lambda w: lambda: w.looked_up.all(), Right("list", at.LEASE_GROUP, "leases", namespace=OURS)),
        (lambda w: lambda: w.certificates.read("c", "m"), Right("get", "", "configmaps", namespace=OURS)),
        (lambda w: lambda: w.certificates.write(RECORD), Right("create", "", "configmaps", namespace=OURS)),
        (update_a_record, Right("update", "", "configmaps", namespace=OURS)),
        *electing("approver"),
    ],
    "nodes": [
        (watch_nodes, Right("list", "", "nodes")),
        (watch_nodes, Right("watch", "", "nodes")),
        (taint_a_node, Right("patch", "", "nodes")),
        (tell_a_gate, Right("patch", "", "nodes", "status")),
        (lambda w: lambda: w.drains.pods("n"), Right("list", "", "pods")),
        (lambda w: lambda: w.drains.evict(POD), Right("create", "", "pods", "eviction")),
        (lambda w: lambda: w.events.create(EVENT), Right("create", "events.k8s.io", "events", namespace="default")),
        (count_an_event, Right("patch", "events.k8s.io", "events", namespace="default")),
        *electing("nodes"),
    ],
}
CASES = [
    pytest.param(role, prepare, right, id=f"{role}-{right}")
    for role, needed in NEEDED.items()
    for prepare, right in needed
]


def test_every_right_of_the_files_has_its_test() -> None:
    assert {role: sorted(right for _, right in needed) for role, needed in NEEDED.items()} == {
        role: sorted(rights) for role, rights in ALL.items()
    }
    for role, rights in ALL.items():
        granted = [
            rule
            for one in manifests()
            if one["metadata"]["name"] == f"netboot-{role}" and one["kind"] in KINDS
            for whole in one["rules"]
            for rule in atoms(whole)
        ]
        assert sorted(map(str, granted)) == sorted(str(atom(right)) for right in rights)


@pytest.mark.parametrize(("role", "prepare", "right"), CASES)
def test_a_right_less_breaks_an_operation(
    role: str,
    prepare: Prepare,
    right: Right,
    world: RealWorld,
    as_admin: Admin,
    connections: dict[str, Connection],
) -> None:
    operation = prepare(world)
    whole = grants(role, right)
    rules = [one for rule in whole["rules"] for one in atoms(rule)]
    rules.remove(atom(right))
    as_admin.apply({**whole, "rules": rules})
    try:
        mine = KubePreconditions(connections[role], "netboot")
        asked = right._replace(namespace=PLACES.get(right.namespace, right.namespace))._asdict()
        wait_for(lambda: not mine.can(**asked))
        with pytest.raises((ClusterRefusedError, ElectionRefusedError), match="lacks a right"):
            operation()
    finally:
        as_admin.apply(whole)
        wait_for(lambda: mine.can(**asked))
    operation()


@pytest.mark.parametrize("namespace", ["kube-system", "netboot", "netboot-leaders", "default"])
@pytest.mark.parametrize("role", RIGHTS)
def test_an_account_has_these_rights_and_no_other(role: str, namespace: str, users: dict[str, Admin]) -> None:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    rules = users[role]("POST", path, {**review, "spec": {"namespace": namespace}}).json()["status"]["resourceRules"]
    found = [one for rule in rules for one in atoms(rule) if not one["resources"][0].startswith("selfsubject")]
    here = {"", {place: name for name, place in PLACES.items()}.get(namespace, namespace)}
    assert sorted(map(str, found)) == sorted(str(atom(right)) for right in ALL[role] if right.namespace in here)


TOKEN = f"{at.SECRETS}/bootstrap-token-abcdef"
POLICIES_AT = f"/apis/{at.ADMISSION_GROUP}/v1/validatingadmissionpolicies"
NAMED = {"metadata": {"name": "x"}}
PATCH: dict[str, Any] = {"metadata": {"labels": {"x": "y"}}}
BEYOND: dict[str, list[tuple[str, str, str, Any]]] = {
    "issuer": [
        ("read a token", "GET", TOKEN, None),
        ("list Secrets", "GET", at.SECRETS, None),
        ("watch Secrets", "GET", f"{at.SECRETS}?watch=1", None),
        ("change a Secret", "PUT", TOKEN, NAMED),
        ("delete all Secrets", "DELETE", at.SECRETS, None),
        ("make a Secret elsewhere", "POST", "/api/v1/namespaces/netboot/secrets", NAMED),
        ("delete a Secret elsewhere", "DELETE", "/api/v1/namespaces/netboot/secrets/x", None),
        ("approve a request", "PUT", f"{at.CSRS}/x/approval", NAMED),
        ("read requests", "GET", at.CSRS, None),
        ("sign", "PUT", f"{at.CSRS}/x/status", NAMED),
        ("list Nodes", "GET", at.NODES, None),
        ("make a Node", "POST", at.NODES, NAMED),
        ("patch a Node", "PATCH", f"{at.NODES}/x?fieldManager=x", PATCH),
        ("change a Node's status", "PUT", f"{at.NODES}/x/status", NAMED),
        ("delete all Nodes", "DELETE", at.NODES, None),
        ("delete all Leases", "DELETE", at.LEASES, None),
        ("delete another's Lease", "DELETE", f"/apis/{at.LEASE_GROUP}/v1/namespaces/kube-system/leases/x", None),
        ("read others' Leases", "GET", f"/apis/{at.LEASE_GROUP}/v1/namespaces/kube-system/leases", None),
        ("bind a role", "POST", at.BINDINGS, NAMED),
        ("get a token of an account", "POST", "/api/v1/namespaces/netboot/serviceaccounts/netboot-approver/token", {}),
        ("change the policy", "PUT", f"{POLICIES_AT}/netboot-tokens", NAMED),
        ("delete the policy", "DELETE", f"{POLICIES_AT}/netboot-tokens", None),
        ("read another policy", "GET", f"{POLICIES_AT}/x", None),
        ("make a Pod", "POST", "/api/v1/namespaces/netboot/pods", NAMED),
        ("read a ConfigMap", "GET", "/api/v1/namespaces/kube-system/configmaps", None),
        ("read a machine's certificates", "GET", f"{at.CONFIG_MAPS}/netboot-x", None),
        ("change a machine's certificates", "PUT", f"{at.CONFIG_MAPS}/netboot-x", NAMED),
        ("say how long certificates live", "PUT", f"{at.CONFIG_MAPS}/netboot-signing", NAMED),
        ("say it first", "POST", at.CONFIG_MAPS, NAMED),
    ],
    "approver": [
        ("make a token", "POST", at.SECRETS, NAMED),
        ("read a token", "GET", TOKEN, None),
        ("list Secrets", "GET", at.SECRETS, None),
        ("ask for a certificate", "POST", at.CSRS, NAMED),
        ("delete a request", "DELETE", f"{at.CSRS}/x", None),
        ("sign", "PUT", f"{at.CSRS}/x/status", NAMED),
        ("delete a record", "DELETE", f"{at.CONFIG_MAPS}/x", None),
        ("write a ConfigMap elsewhere", "POST", "/api/v1/namespaces/kube-system/configmaps", NAMED),
        ("write a Lease", "PUT", f"{at.LEASES}/x", NAMED),
        ("read a Node", "GET", f"{at.NODES}/x", None),
        ("delete a Node", "DELETE", f"{at.NODES}/x", None),
        ("make a Node", "POST", at.NODES, NAMED),
        ("bind a role", "POST", at.BINDINGS, NAMED),
        ("get a token of an account", "POST", "/api/v1/namespaces/netboot/serviceaccounts/netboot-issuer/token", {}),
    ],
    "nodes": [
        ("make a Node", "POST", at.NODES, NAMED),
        ("change a Node's status", "PUT", f"{at.NODES}/x/status", NAMED),
        ("put a Node", "PUT", f"{at.NODES}/x", NAMED),
        ("delete a Node", "DELETE", f"{at.NODES}/x", None),
        ("list Secrets", "GET", at.SECRETS, None),
        ("read Leases", "GET", at.LEASES, None),
        ("read requests", "GET", at.CSRS, None),
    ],
}


@pytest.mark.parametrize(
    ("role", "method", "path", "body"),
    [pytest.param(role, *how, id=f"{role}-{what}") for role, all_ in BEYOND.items() for what, *how in all_],
)
def test_beyond_is_refused(role: str, method: str, path: str, body: Any, users: dict[str, Admin]) -> None:
    answer = users[role](method, path, body)
    assert answer.status_code == 403
    assert f'User "system:serviceaccount:netboot:netboot-{role}" cannot' in answer.json()["message"]


def test_the_approver_approves_for_no_other_signer(world: RealWorld, as_admin: Admin) -> None:
    world.submit_to(at.OTHER_SIGNER, "of-a-user")
    raw = as_admin("GET", f"{at.CSRS}/of-a-user").json()
    csr = Csr(
        name="of-a-user",
        uid=raw["metadata"]["uid"],
        version=raw["metadata"]["resourceVersion"],
        signer=at.OTHER_SIGNER,
        username="",
        groups=(),
        usages=(),
        expiration_seconds=None,
        pem=base64.b64decode(raw["spec"]["request"]),
        decided=False,
    )
    with pytest.raises(ClusterRefusedError, match="user not permitted to approve requests with signerName"):
        world.requests.approve(csr, "Netboot", "")
    # Nor where the request is said to be of a signer that is ours: the one on record counts.
    with pytest.raises(ClusterRefusedError, match="user not permitted to approve requests with signerName"):
        world.requests.approve(csr._replace(signer=at.CLIENT_SIGNER), "Netboot", "")
    assert not as_admin("GET", f"{at.CSRS}/of-a-user").json()["status"]
