"""Holds are objects: a real service, a real API server, and what may become of either.

A control plane of its own: definitions, rights and objects go here, and come back.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from images.store.store import Store
from lab.kube.accounts import Admin
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from lab.kube.kubectl import Kubectl
from netboot.config import load_config
from netboot.kube.resources.kinds import ALL, GROUP, VERSION
from tests.cluster.conftest import CACHE
from tests.cluster.test_resources import (
    BINDING,
    SECONDS,
    SITE,
    again,
    boots,
    detail,
    established,
    in_order,
    machine,
    may,
    piped,
    reader,
    told,
    until,
)
from tests.processes import wait_for
from tests.sites import add_image, make_site
from tests.sockets.service import Service, serving

pytestmark = pytest.mark.cluster
UNTIL = "2099-01-01T00:00:00Z"


def hold(name: str, machine: str = "gpu-001", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Hold",
        "metadata": {"name": name, "namespace": "netboot"},
        "spec": {"machine": machine, "reason": "DIMM 4", **more},
    }


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(find(CACHE), tmp_path_factory.mktemp("holds-cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(own: Cluster) -> Kubectl:
    return Kubectl(find(CACHE) / "kubectl", own.admin, own.folder)


@pytest.fixture(scope="module")
def service(own: Cluster, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    root = tmp_path_factory.mktemp("holds-site")
    made = make_site(root, workers=1, inventory=SITE)
    Store(made.store).set_channel("stable", add_image(made))
    file = root / "netboot.yaml"
    file.write_text(file.read_text() + "inventory_kubernetes: {shipper: secrets/shipper.kubeconfig, holds: true}\n")
    config = load_config(file)
    service = Service(config, file)
    kubectl("create", "namespace", "netboot")
    for words in (("crds",), ("manifests", "--inventory")):
        piped(service, kubectl, *words)
    established(kubectl, *(kind.plural for kind in ALL.values()))
    accounts = service.netboot("cluster", "kubeconfigs", "--inventory", "--admin-kubeconfig", str(own.admin))
    assert accounts.returncode == 0, accounts.stderr
    piped(service, kubectl, "inventory")
    with serving(config, file, service=service):
        wait_for(lambda: in_order(service), SECONDS)
        yield service


@pytest.fixture(autouse=True)
def put_back(service: Service, kubectl: Kubectl) -> Iterator[None]:
    """What a test that failed has left or taken away is put back: those that come later begin without a hold."""
    yield
    if held(service) == [] and in_order(service):
        return
    for words in (("crds",), ("manifests", "--inventory")):
        piped(service, kubectl, *words)
    established(kubectl, *(kind.plural for kind in ALL.values()))
    kubectl.apply("dimm", hold("dimm", by="alice"))  # a deletion that nobody meant is not believed
    kubectl.apply("psu", hold("psu", "gpu-002"))
    wait_for(lambda: in_order(service) and known(service, kubectl), SECONDS)
    kubectl("delete", "-n", "netboot", "holds.netboot.dev", "--all")
    kubectl("delete", "-n", "netboot", "machine.netboot.dev/gpu-010", "--ignore-not-found")
    wait_for(lambda: held(service) == [] and in_order(service), SECONDS)


def held(service: Service) -> list[tuple[str, str, str]]:
    return [(each["machine"], each["who"], each["reason"]) for each in service.api("/v1/intents")["intents"]]


def known(service: Service, kubectl: Kubectl) -> bool:
    """Whether the Holds that there are hold, each by the uids of itself, its namespace and its definition: only then is
    their deletion believed."""
    of = "/".join(kubectl.get(*what)["metadata"]["uid"] for what in (("ns/netboot",), (f"crd/holds.{GROUP}",)))
    there = {(each["metadata"]["uid"], of) for each in kubectl.get("-n", "netboot", "holds")["items"]}
    return {(one["object"]["uid"], one["object"]["of"]) for one in service.api("/v1/intents")["intents"]} == there


OBJECT = (
    "gpu-001 is held by an object of Kubernetes, for as long as that is there: `kubectl delete -n netboot hold/dimm` "
    "(where there is none any more, apply it again first)"
)
DIMM = ("gpu-001", "alice (hold/dimm)", "DIMM 4")


def test_who_applies_one_holds_a_machine_and_who_deletes_it_lets_it_go(service: Service, kubectl: Kubectl) -> None:
    kubectl.apply("hold", hold("dimm", by="alice", until=UNTIL))
    wait_for(lambda: held(service) == [DIMM], SECONDS)
    shown = service.api("/v1/machines/gpu-001")
    assert [each["owner"] for each in shown["intents"]] == ["kubernetes/netboot/dimm"]
    assert "alice (hold/dimm)" in service.netboot("machine", "holds").stdout
    refused = service.order("/v1/machines/gpu-001/unhold")
    assert (refused.status_code, refused.json()["detail"]) == (409, OBJECT)
    until(kubectl, "condition=InForce", "-n", "netboot", "hold/dimm")
    heading, row = kubectl("get", "holds", "-n", "netboot").splitlines()
    assert heading.split() == ["NAME", "MACHINE", "IN", "FORCE", "BY", "UNTIL", "REASON", "AGE"]
    assert row.split()[:6] == ["dimm", "gpu-001", "True", "alice", UNTIL, "DIMM"]
    kubectl.apply("hold", hold("dimm", by="alice", reason="DIMM 5"))
    wait_for(lambda: held(service) == [(*DIMM[:2], "DIMM 5")], SECONDS)
    wait_for(lambda: generations(kubectl.get("-n", "netboot", "hold/dimm")) == (2, 2), SECONDS)
    kubectl("delete", "-n", "netboot", "hold/dimm")
    wait_for(lambda: held(service) == [], SECONDS)
    history = service.api("/v1/machines/gpu-001/intents")["history"]
    assert [each["act"] for each in history] == ["taken-off", "altered", "put-on"]


def generations(thing: dict[str, Any]) -> tuple[int, int]:
    """Of the object, and of that of which its condition says something."""
    return thing["metadata"]["generation"], thing["status"]["conditions"][0]["observedGeneration"]


BAD: dict[str, dict[str, Any]] = {
    "no reason": {"machine": "gpu-001"},
    "an empty reason": {"machine": "gpu-001", "reason": " "},
    "two lines": {"machine": "gpu-001", "reason": "a\nb"},
    "a word that turns text around": {"machine": "gpu-001", "reason": "a\u202eb"},
    "a long reason": {"machine": "gpu-001", "reason": "x" * 501},
    "no machine": {"reason": "x"},
    "a name that none has": {"machine": "GPU 1", "reason": "x"},
    "an end that is none": {"machine": "gpu-001", "reason": "x", "until": "tomorrow"},
    "an end without a zone": {"machine": "gpu-001", "reason": "x", "until": "2099-01-01T00:00:00"},
    "a key too many": {"machine": "gpu-001", "reason": "x", "since": "now"},
}


def test_an_api_server_takes_no_malformed_one_and_a_hold_stays_of_its_machine(own: Cluster, service: Service) -> None:
    admin = Admin(own)
    path = f"/apis/{GROUP}/{VERSION}/namespaces/netboot/holds"
    found = {
        name: admin("POST", f"{path}?fieldValidation=Strict", {**hold("bad"), "spec": spec}).status_code
        for name, spec in BAD.items()
    }
    assert {name for name, status in found.items() if status not in (400, 422)} == set(), found
    good = {"machine": "gpu-001", "reason": "Lüfter 3 – laut", "until": "2099-01-01T00:00:00.5+02:00", "by": None}
    assert admin("POST", f"{path}?dryRun=All", {**hold("good"), "spec": good}).status_code == 201
    assert admin("POST", path, hold("dimm")).status_code == 201
    moved = admin("PATCH", f"{path}/dimm?fieldManager=x&force=true", hold("dimm", "gpu-002"))
    assert (moved.status_code, "make another object" in moved.text) == (422, True), moved.text
    assert admin("DELETE", f"{path}/dimm").status_code == 200
    wait_for(lambda: held(service) == [], SECONDS)
    admin.close()


def test_of_a_machine_that_there_is_not_it_says_so_and_others_hold(service: Service, kubectl: Kubectl) -> None:
    kubectl.apply("none", hold("none", "gpu-099"))
    kubectl.apply("dimm", hold("dimm", by="alice"))
    wait_for(lambda: held(service) == [DIMM], SECONDS)
    until(kubectl, "condition=InForce=False", "-n", "netboot", "hold/none")
    [said] = kubectl.get("-n", "netboot", "hold/none")["status"]["conditions"]
    assert (said["reason"], said["message"]) == (
        "NoSuchMachine",
        "the inventory in force has no machine 'gpu-099'; it is held as soon as there is one",
    )
    kubectl("delete", "-n", "netboot", "hold/none", "hold/dimm")
    wait_for(lambda: held(service) == [], SECONDS)


def test_an_account_without_rights_lets_nobody_go_and_machines_boot_by_new_inventory(
    own: Cluster, service: Service, kubectl: Kubectl
) -> None:
    """403 for holds alone: the inventory goes on."""
    kubectl.apply("dimm", hold("dimm", by="alice"))
    wait_for(lambda: held(service) == [DIMM], SECONDS)
    admin, account = Admin(own), reader(own, service)
    role = BINDING.replace("rolebindings", "roles")
    rights = admin("GET", role).json()
    less = [{**rule, "resources": [each for each in rule["resources"] if each != "holds"]} for rule in rights["rules"]]
    assert admin("PUT", role, {**rights, "rules": less}).status_code == 200
    wait_for(lambda: not may(account, f"/apis/{GROUP}/{VERSION}/namespaces/netboot/holds"), SECONDS)
    again(service)
    said = told(service, "resources", lambda said: said["message"].startswith("holds: the account"))["message"]
    assert ("what counts is what there was at " in said, "lacks a right" in said) == (True, True), said
    kubectl("delete", "-n", "netboot", "hold/dimm")
    kubectl.apply("one", machine(10))
    wait_for(lambda: boots(service, 10), SECONDS)
    assert held(service) == [DIMM]
    kubectl("delete", "-n", "netboot", "machine.netboot.dev/gpu-010")
    rights = admin("GET", role).json()
    assert admin("PUT", role, {**rights, "rules": [*less, rule_of_holds()]}).status_code == 200
    wait_for(lambda: held(service) == [], SECONDS)
    wait_for(lambda: detail(service, "resources")["ok"], SECONDS)
    account.close()
    admin.close()


def rule_of_holds() -> dict[str, Any]:
    return {"apiGroups": [GROUP], "resources": ["holds"], "verbs": ["list", "watch"]}


def test_a_definition_that_is_removed_and_made_anew_lets_nobody_go(service: Service, kubectl: Kubectl) -> None:
    kubectl.apply("dimm", hold("dimm", by="alice"))
    wait_for(lambda: held(service) == [DIMM], SECONDS)
    kubectl("delete", "crd", f"holds.{GROUP}")
    wait_for(lambda: "holds: " in detail(service, "resources")["message"], SECONDS)
    piped(service, kubectl, "crds")
    established(kubectl, "holds")
    wait_for(lambda: "nobody meant them: hold/dimm" in detail(service, "resources")["message"], SECONDS)
    assert held(service) == [DIMM]
    kubectl.apply("psu", hold("psu", "gpu-002"))
    wait_for(lambda: held(service) == [DIMM, ("gpu-002", "hold/psu", "DIMM 4")], SECONDS)  # new ones are taken
    kubectl.apply("dimm", hold("dimm", by="alice"))
    wait_for(lambda: detail(service, "resources")["ok"] and known(service, kubectl), SECONDS)
    assert len(held(service)) == 2
    kubectl("delete", "-n", "netboot", "hold/dimm", "hold/psu")
    wait_for(lambda: held(service) == [], SECONDS)
