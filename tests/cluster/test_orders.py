"""Orders as objects of a real API server: by the account that writes them, and what nobody may write."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.errors import EndedError
from lab.kube.accounts import apply_manifests
from lab.kube.binaries import find
from lab.kube.cluster import Cluster
from lab.kube.kubectl import Kubectl
from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.kube.accounts import make_kubeconfig
from netboot.kube.act_objects import KubeOrderObjects
from netboot.kube.connection import Connection, connect
from netboot.kube.errors import ClusterRefusedError
from netboot.kube.machine_objects import KubeStatuses
from netboot.kube.manifests import inventory_text
from netboot.kube.resources.definitions import definitions
from netboot.kube.resources.kinds import GROUP, ORDER, VERSION
from netboot.lifecycle.drains import Drain, State
from netboot.lifecycle.order_objects import OrderObject, spec_of
from netboot.stores.said_orders import status_of
from tests.cluster.conftest import CACHE
from tests.drains import START, drain

pytestmark = pytest.mark.cluster
ACCOUNT = "system:serviceaccount:netboot:netboot-orders"
NAME = f"{ORDER.plural}.{GROUP}"


@pytest.fixture(scope="module")
def kubectl(control_plane: Cluster) -> Kubectl:
    """Rights, policies and definitions are applied."""
    apply_manifests(control_plane)
    made = Kubectl(find(CACHE) / "kubectl", control_plane.admin, control_plane.folder)
    file = control_plane.folder / "orders.yaml"
    file.write_text("---\n".join([yaml.safe_dump_all(definitions()), inventory_text()]))
    made("apply", "--server-side", "--force-conflicts", "-f", str(file))
    made("wait", "--for=condition=Established", f"crd/{NAME}", "--timeout=180s")
    return made


@pytest.fixture
def reached(control_plane: Cluster, kubectl: Kubectl, tmp_path: Path) -> Iterator[Callable[[str], Connection]]:
    """A connection by the account of a role."""
    opened = []

    def by(role: str) -> Connection:
        file = tmp_path / f"{role}.kubeconfig"
        file.touch(0o600)
        file.write_bytes(make_kubeconfig(control_plane.admin, role, "netboot", 3600).content)
        opened.append(connect(file, manifests="inventory"))
        return opened[-1]

    yield by
    for each in opened:
        each.close()
    kubectl("delete", "-n", "netboot", NAME, "--all", "--ignore-not-found")


@pytest.fixture
def objects(reached: Callable[[str], Connection]) -> KubeOrderObjects:
    return KubeOrderObjects(partial(reached, "orders"), "netboot")


def ended(order: Drain, words: str = "by alice") -> Drain:
    return order.model_copy(update={"end": "taken-off", "words": words, "ended_ms": START + 1})


def test_an_order_is_made_ended_and_followed_by_another(objects: KubeOrderObjects) -> None:
    assert objects.read("gpu-001") is None
    given = drain("gpu-001", "1", bare=True)
    made = objects.write("gpu-001", spec_of(given), None)
    assert (made.drain, objects.read("gpu-001"), objects.all()) == (given, made, [made])
    over = objects.write("gpu-001", spec_of(ended(given)), made)
    assert over.drain == ended(given)
    next_ = drain("gpu-001", "2", "reboot", owner="rollout/7")
    assert objects.write("gpu-001", spec_of(next_), over).drain == next_, "nothing of the one before is in it"
    for before in (None, made, over):
        with pytest.raises(ConflictError):
            objects.write("gpu-001", spec_of(drain("gpu-001", "3")), before)
    assert objects.all()[0].drain == next_


def test_what_was_ordered_stays_and_ends_once(objects: KubeOrderObjects) -> None:
    given = drain("gpu-001", "1")
    made = objects.write("gpu-001", spec_of(given), None)
    changes = {
        "what": "reboot",
        "boot": "0" * 36,
        "who": "bob",
        "owner": "rollout/alpha/7",
        "reason": "fans",
        "since_ms": START - 1,
        "deadline_ms": START + 1,
        "bare": True,
        "local": True,
    }
    assert changes.keys() == Drain.model_fields.keys() - {"id", "machine", "end", "ended_ms", "words"}
    for key, value in changes.items():
        refused(objects, given.model_copy(update={key: value}), made, "an order stays as it was given")
    over = objects.write("gpu-001", spec_of(ended(given)), made)
    assert (made.generation, over.generation) == (1, 2)
    refused(objects, given, over, "an order that has ended stays so")
    refused(objects, ended(given, "by bob"), over, "an order that has ended stays so")
    assert objects.write("gpu-001", spec_of(drain("gpu-001", "2", bare=True)), over).drain == drain(
        "gpu-001", "2", bare=True
    )


def test_an_end_that_is_null_is_none(objects: KubeOrderObjects, kubectl: Kubectl) -> None:
    given = drain("gpu-001", "1")
    objects.write("gpu-001", spec_of(given), None)
    kubectl("replace", "-f", _file(kubectl, objects.all()[0], {"end": None}))
    there = objects.read("gpu-001")
    assert there is not None
    assert there.drain == given
    assert objects.write("gpu-001", spec_of(ended(given)), there).drain == ended(given)


def test_what_others_put_at_an_object_stays_and_one_that_is_going_can_still_end(
    objects: KubeOrderObjects, kubectl: Kubectl
) -> None:
    made = objects.write("gpu-001", spec_of(drain("gpu-001", "1")), None)
    kubectl("label", "-n", "netboot", f"{NAME}/gpu-001", "team=hardware")
    kubectl("annotate", "-n", "netboot", f"{NAME}/gpu-001", "ticket=4711")
    finalizers = ["patch", "-n", "netboot", f"{NAME}/gpu-001", "--type=merge", "-p"]
    kubectl(*finalizers, '{"metadata": {"finalizers": ["example.com/audit"]}}')
    before = objects.read("gpu-001")
    assert before is not None
    kubectl("delete", "-n", "netboot", f"{NAME}/gpu-001", "--wait=false")
    going = objects.read("gpu-001")
    assert going is not None
    assert (before.going, going.going, going.uid, going.drain) == (False, True, made.uid, drain("gpu-001", "1"))
    over = objects.write("gpu-001", spec_of(ended(drain("gpu-001", "1"))), going)
    assert over.metadata == {
        "labels": {"team": "hardware"},
        "annotations": {"ticket": "4711"},
        "finalizers": ["example.com/audit"],
    }
    kubectl(*finalizers, '{"metadata": {"finalizers": null}}')
    assert objects.read("gpu-001") is None


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"deadline": "2026-12-24T08:00:00Z"}, "deadline must be within a day of since"),
        ({"who": "al\nice"}, "spec.who in body should match"),
        ({"reason": ""}, "spec.reason in body should"),
        ({"id": "a/b"}, "spec.id in body should match"),
        ({"what": "burn"}, "spec.what: Unsupported value"),
    ],
)
def test_what_is_no_order_is_not_taken(
    objects: KubeOrderObjects, kubectl: Kubectl, changed: dict[str, Any], why: str
) -> None:
    made = objects.write("gpu-001", spec_of(ended(drain("gpu-001", "1"))), None)
    with pytest.raises(EndedError, match=why):
        kubectl("replace", "-f", _file(kubectl, made, {"id": "2", "end": None} | changed))


def _file(kubectl: Kubectl, made: OrderObject, changed: dict[str, Any]) -> str:
    """The object, with something else in it."""
    assert made.drain is not None
    metadata = {"name": made.name, "namespace": "netboot", "resourceVersion": made.version}
    spec = spec_of(made.drain).model_dump(mode="json", exclude_none=True) | changed
    body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": ORDER.kind, "metadata": metadata, "spec": spec}
    file = kubectl.folder / "order.yaml"
    file.write_text(yaml.safe_dump(body))
    return str(file)


def refused(objects: KubeOrderObjects, order: Drain, before: OrderObject, why: str) -> None:
    with pytest.raises(ClusterUnavailableError, match=why):
        objects.write(order.machine, spec_of(order), before)


def test_who_writes_orders_says_of_none_how_far_it_is_and_deletes_none(
    objects: KubeOrderObjects, reached: Callable[[str], Connection], kubectl: Kubectl
) -> None:
    made = objects.write("gpu-001", spec_of(drain("gpu-001", "1")), None)
    status = status_of(State(id="1", state="draining", words="2 Pods are left", since_ms=START))
    with pytest.raises(ClusterRefusedError, match='cannot patch resource "orders/status"'):
        KubeStatuses(reached("orders"), "netboot", ORDER).write("gpu-001", made.uid, status)
    KubeStatuses(reached("shipper"), "netboot", ORDER).write("gpu-001", made.uid, status)
    there = objects.read("gpu-001")
    assert there is not None
    assert there.state == State(id="1", state="draining", words="2 Pods are left", since_ms=START)
    line = kubectl("get", "-n", "netboot", "nbo", "--no-headers").split()
    assert line[:5] == ["gpu-001", "drain", "draining", "alice", "2026-01-01T00:30:00.000Z"]
    answers = {
        (verb, what): _may(kubectl, verb, what)
        for what in ("orders", "orders/status", "machines", "holds")
        for verb in ("delete", "patch", "update")
    }
    assert {asked for asked, may in answers.items() if may} == {("update", "orders")}


def _may(kubectl: Kubectl, verb: str, what: str) -> bool:
    kind, _, part = what.partition("/")
    asked = ["auth", "can-i", verb, f"{kind}.{GROUP}", "-n", "netboot", f"--as={ACCOUNT}"]
    try:
        return kubectl(*asked, *([f"--subresource={part}"] if part else [])).strip() == "yes"
    except EndedError as error:  # with 1, where it may not
        assert "no" in str(error).split(), error
        return False
