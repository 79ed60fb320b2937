"""What admission asks of a node that registers, and of the issuer that deletes one, against a real apiserver."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests

from bench.procfs import cpu_seconds
from lab.kube.accounts import Admin, object_path
from lab.kube.cluster import Cluster
from netboot.kube.errors import ClusterRefusedError
from netboot.kube.leases import lease_name
from tests.kube_contract import credential
from tests.kube_world import NODES, RealWorld
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
NAME = "taint-1"
UNCHECKED = {"key": "netboot.dev/unchecked", "effect": "NoExecute"}
UNATTESTED = {"key": "netboot.dev/unattested", "effect": "NoSchedule"}
DECLARED = {"key": "rack", "value": "a-1", "effect": "NoExecute"}
MARK = {"netboot.dev/managed-by": "netboot"}
ALL = "netboot.dev/unchecked:NoExecute,netboot.dev/unattested:NoSchedule,rack=a-1:NoExecute"


@pytest.fixture
def as_node(as_admin: Admin) -> Iterator[Callable[..., requests.Response]]:
    """One request as the kubelet of `taint-1`; its Node is gone afterwards."""

    def ask(method: str, path: str, body: Any) -> requests.Response:
        return as_admin(method, path, body, user=f"system:node:{NAME}", group="system:nodes")

    yield ask
    as_admin("DELETE", f"{NODES}/{NAME}")


def node_of(*taints: dict[str, str], labels: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": NAME, "labels": MARK if labels is None else labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": list(taints)}}


def leased(world: RealWorld, as_node: Callable[..., requests.Response], taints: str = ALL) -> None:
    """The machine's Lease names these taints, and the apiserver's admission has heard of it."""
    tried = f"{NODES}?dryRun=All"
    wait_for(lambda: as_node("POST", tried, node_of(UNCHECKED, labels={})).status_code == 201)  # of the one before, too
    world.leases.write(credential(NAME, node=NAME, taints=taints))
    wait_for(lambda: as_node("POST", tried, node_of(UNCHECKED, labels={})).status_code == 422)


def denied(answer: requests.Response, why: str, policy: str = "netboot-taints") -> None:
    assert answer.status_code == 422, answer.text
    by = f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}'"
    assert f"{by} denied request: {why}" in answer.json()["message"], answer.text


@pytest.mark.parametrize(
    "taints",
    [
        (UNCHECKED,),
        (UNCHECKED, UNATTESTED),
        (UNCHECKED, DECLARED),
        (UNCHECKED, UNATTESTED, DECLARED | {"value": "a-2"}),
        (UNCHECKED, UNATTESTED, {"key": "rack", "effect": "NoExecute"}),
        (UNCHECKED, UNATTESTED | {"effect": "PreferNoSchedule"}, DECLARED),
    ],
    ids=["bare", "no declared one", "no unattested", "another value", "no value", "a weak one"],
)
def test_a_node_that_leaves_out_a_taint_of_its_lease_does_not_register(
    world: RealWorld, as_node: Callable[..., requests.Response], taints: tuple[dict[str, str], ...]
) -> None:
    leased(world, as_node)
    why = f"this node must register with the taints of its Lease {lease_name('default', NAME)}: {ALL}"
    denied(as_node("POST", NODES, node_of(*taints)), why)


def test_a_node_registers_with_the_taints_of_its_lease_and_changes_none(
    world: RealWorld, as_node: Callable[..., requests.Response], as_admin: Admin, break_glass: Admin
) -> None:
    leased(world, as_node)
    made = as_node("POST", NODES, node_of(DECLARED, UNATTESTED, UNCHECKED, {"key": "more", "effect": "NoSchedule"}))
    assert made.status_code == 201, made.text
    node = made.json()
    metadata = {key: value for key, value in node["metadata"].items() if key != "resourceVersion"}
    kept = [one for one in node["spec"]["taints"] if one != DECLARED]

    def change(ask: Callable[..., requests.Response], taints: list[dict[str, str]]) -> requests.Response:
        return ask("PUT", f"{NODES}/{NAME}", node | {"metadata": metadata, "spec": {"taints": taints}})

    assert "is not allowed to modify taints" in change(as_node, kept).text, "by NodeRestriction, where it is on"
    with beyond_node_restriction(as_admin) as like_a_node:
        for taints in ([], [UNCHECKED], kept, [*kept, DECLARED | {"value": "a-2"}]):
            denied(change(like_a_node, taints), "a node may not change its taints", "netboot-nodes")
    operator = change(break_glass, [UNATTESTED])
    assert operator.status_code == 200, operator.text


def test_a_node_may_cordon_itself_and_not_uncordon_itself(
    world: RealWorld, as_node: Callable[..., requests.Response], as_admin: Admin
) -> None:
    leased(world, as_node)
    assert as_node("POST", NODES, node_of(UNCHECKED, UNATTESTED, DECLARED)).status_code == 201

    def write(ask: Callable[..., requests.Response], cordoned: bool | None, status: int) -> requests.Response:
        for _ in range(20):  # the controllers write to it, too
            node = as_admin("GET", f"{NODES}/{NAME}", None).json()
            node["spec"]["unschedulable"] = cordoned
            answer = ask("PUT", f"{NODES}/{NAME}", node)
            if answer.status_code not in (403, 409):
                break
        assert answer.status_code == status, answer.text
        return answer

    write(as_node, True, 200)
    for cordoned in (False, None):
        denied(write(as_node, cordoned, 422), "a node may not uncordon itself", "netboot-nodes")
    write(as_admin, False, 200)


@pytest.mark.parametrize("path", [f"{NODES}/{NAME}", f"{NODES}/{NAME}/status"], ids=["node", "status"])
def test_a_node_cannot_keep_its_node_from_being_deleted(
    world: RealWorld, as_node: Callable[..., requests.Response], as_admin: Admin, path: str
) -> None:
    """The kubelet of its next boot would adopt it, without the taints of a new one."""
    leased(world, as_node)
    why, mine = "a node may not write finalizers onto its Node", {"finalizers": ["example.com/mine"]}
    node = node_of(UNCHECKED, UNATTESTED, DECLARED)
    denied(as_node("POST", NODES, node | {"metadata": node["metadata"] | mine}), why, "netboot-nodes")
    assert as_node("POST", NODES, node).status_code == 201
    for _ in range(20):  # the controllers write to it, too
        known = as_admin("GET", f"{NODES}/{NAME}").json()
        answer = as_node("PUT", path, known | {"metadata": known["metadata"] | mine})
        if answer.status_code not in (403, 409):
            break
    denied(answer, why, "netboot-nodes")


@contextmanager
def beyond_node_restriction(as_admin: Admin) -> Iterator[Callable[..., requests.Response]]:
    """Somebody of the nodes' group who may do everything, and whom NodeRestriction takes for no node by its name."""
    rbac = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "like-a-node"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "like-a-node"}],
    }
    as_admin.apply(binding)

    def ask(method: str, path: str, body: Any) -> requests.Response:
        return as_admin(method, path, body, user="like-a-node", group="system:nodes")

    try:
        wait_for(lambda: ask("GET", NODES, None).status_code == 200)
        yield ask
    finally:
        as_admin("DELETE", object_path(binding))


@pytest.mark.parametrize("path", [f"{NODES}/{NAME}", f"{NODES}/{NAME}/status"], ids=["node", "status"])
def test_a_node_can_neither_take_its_mark_off_nor_put_one_on(
    world: RealWorld, as_node: Callable[..., requests.Response], as_admin: Admin, break_glass: Admin, path: str
) -> None:
    leased(world, as_node)
    made = as_node("POST", NODES, node_of(UNCHECKED, UNATTESTED, DECLARED))
    assert made.status_code == 201, made.text
    why = "a node may not change its label netboot.dev/managed-by"

    def labelled(ask: Callable[..., requests.Response], at: str, labels: dict[str, str]) -> requests.Response:
        """Its labels replaced; again where a controller wrote to it meanwhile."""

        def put() -> list[requests.Response]:
            node = as_admin("GET", f"{NODES}/{NAME}").json()
            answer = ask("PUT", at, node | {"metadata": node["metadata"] | {"labels": labels}})
            late = answer.status_code == 409 or (not answer.ok and "taints" in answer.json()["message"])
            return [] if late else [answer]

        return wait_for(put)[0]

    for labels in ({}, {"netboot.dev/managed-by": "another"}):
        denied(labelled(as_node, path, labels), why, "netboot-nodes")
    assert labelled(as_node, path, MARK | {"other": "label"}).status_code == 200
    assert labelled(break_glass, f"{NODES}/{NAME}", {}).status_code == 200
    denied(labelled(as_node, path, MARK), why, "netboot-nodes")


def test_a_node_with_a_lease_registers_with_its_mark(
    world: RealWorld, as_node: Callable[..., requests.Response]
) -> None:
    leased(world, as_node, "netboot.dev/unchecked:NoExecute")
    why = "this node must register with the label netboot.dev/managed-by=netboot"
    for labels in ({}, {"netboot.dev/managed-by": "another"}):
        denied(as_node("POST", NODES, node_of(UNCHECKED, labels=labels)), why)
    assert as_node("POST", NODES, node_of(UNCHECKED)).status_code == 201


def test_leases_of_others_and_of_an_older_netboot_ask_nothing_of_a_node(
    world: RealWorld, as_node: Callable[..., requests.Response]
) -> None:
    world.leases.write(credential("of-older", node=NAME))
    leased(world, as_node)
    world.leases.write(world.leases.read("default", NAME).model_copy(update={"node": "another", "taints": ALL}))  # type: ignore[union-attr] # just written
    wait_for(lambda: as_node("POST", f"{NODES}?dryRun=All", node_of(UNCHECKED, labels={})).status_code == 201)
    denied(
        as_node("POST", NODES, node_of(labels={})),
        "a node must register with the taint netboot.dev/unchecked:NoExecute",
        "netboot-nodes",
    )


def test_a_lease_says_with_which_effect_a_node_registers_also_one_of_an_older_netboot(
    world: RealWorld, as_node: Callable[..., requests.Response]
) -> None:
    """A machine that attested before the upgrade registers as it was told then."""
    older = UNCHECKED | {"effect": "NoSchedule"}
    leased(world, as_node, "netboot.dev/unchecked:NoExecute")
    name = lease_name("default", NAME)
    denied(
        as_node("POST", NODES, node_of(older)),
        f"this node must register with the taints of its Lease {name}: netboot.dev/unchecked:NoExecute",
    )
    known = world.leases.read("default", NAME)
    assert known is not None
    world.leases.write(known.model_copy(update={"taints": "netboot.dev/unchecked:NoSchedule"}))
    wait_for(lambda: as_node("POST", f"{NODES}?dryRun=All", node_of(older)).status_code == 201)


@pytest.mark.parametrize("labels", [{}, {"netboot.dev/managed-by": "another"}, {"netboot.dev/managed": "netboot"}])
def test_the_issuer_deletes_no_node_without_netboots_mark(
    world: RealWorld, as_admin: Admin, labels: dict[str, str]
) -> None:
    """A control plane's Node, say: the right to delete Nodes names none."""
    made = as_admin("POST", NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME, "labels": labels}})
    uid = made.json()["metadata"]["uid"]
    try:
        with pytest.raises(ClusterRefusedError) as caught:
            world.nodes.delete(NAME, uid)
        assert (
            f"nodes \"{NAME}\" is forbidden: ValidatingAdmissionPolicy 'netboot-deletions' with binding "
            "'netboot-deletions' denied request: this Node has no label netboot.dev/managed-by=netboot, so it is not "
            f"known to be of netboot: if it is, kubectl label node {NAME} netboot.dev/managed-by=netboot"
        ) in str(caught.value)
        assert as_admin("GET", f"{NODES}/{NAME}").json()["metadata"]["uid"] == uid
    finally:
        assert as_admin("DELETE", f"{NODES}/{NAME}").status_code == 200, "an administrator may"


def test_of_many_leases_each_is_asked_in_little_time(
    world: RealWorld, as_node: Callable[..., requests.Response], control_plane: Cluster
) -> None:
    """500 machines: what the policy adds to a registration stays far below what a registration takes; by the API
    server's processors, for who else wants them makes the time by the clock longer."""
    for number in range(500):
        world.leases.write(credential(f"many-{number}", taints=ALL))
    leased(world, as_node)
    apiserver = control_plane.processes["kube-apiserver"].pid
    before = cpu_seconds(apiserver)
    for _ in range(10):
        made = as_node("POST", f"{NODES}?dryRun=All", node_of(UNCHECKED, UNATTESTED, DECLARED))
        assert made.status_code == 201, made.text
    each = (cpu_seconds(apiserver) - before) / 10
    print(f"a registration beside 500 Leases: {each * 1000:.1f} ms of a processor")
    assert each < 1.0
