"""Custom resources are the inventory: a real service, a real API server, and what may become of either.

A control plane of its own: definitions, rights and the API server itself go here, and come back.
"""

import json
import os
import platform
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from images.store.store import Store
from lab.errors import EndedError
from lab.kube import cluster as lab
from lab.kube.accounts import Admin
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from lab.kube.kubectl import Kubectl
from netboot.clock import SystemClock
from netboot.config import Config, load_config
from netboot.controllers.overwritten import MANY
from netboot.controllers.resources import ResourcesController
from netboot.controllers.shipper import LOOK_SECONDS, ShipperController
from netboot.kube.connection import connect
from netboot.kube.custom_resources import KubeResources
from netboot.kube.events import KubeMachineEvents
from netboot.kube.machine_objects import KubeMachineObjects
from netboot.kube.resources.kinds import GROUP, KINDS, VERSION
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.object_events import ObjectEvent
from netboot.lifecycle.object_status import Facts
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.trace import apply
from netboot.machines.declarations import Declarations
from netboot.machines.resources import Changed, Listed, Same, declared_as
from netboot.stores.resources import KeptResources
from tests.cluster.conftest import CACHE
from tests.declared_contract import CASES, Key, Spec, World
from tests.processes import stopped, wait_for
from tests.records import IMAGE, START, event, script
from tests.sites import add_image, make_site
from tests.sockets.service import Service, serving

pytestmark = pytest.mark.cluster
SECONDS = 180.0
"""Against hanging alone: what is applied is known in a second or two, on a machine that has nothing else to do."""
SITE = """\
machines:
  - {name: gpu-001, match: {macs: ["52:54:00:00:00:01"]}, profile: compute}
  - {name: gpu-002, match: {macs: ["52:54:00:00:00:02"]}, profile: compute}
profiles:
  - {name: compute, channel: stable}
channels:
  - {name: stable}
maintenance:
  - {name: nights, start: "22:00", end: "05:00"}
"""
NAMES = {"gpu-001", "gpu-002"}
REFUSED = (
    "this site's inventory is custom resources of namespace netboot: `kubectl apply` there (`netboot cluster "
    "inventory` prints files of an inventory as objects)"
)
BINDING = "/apis/rbac.authorization.k8s.io/v1/namespaces/netboot/rolebindings/netboot-inventory"


def mac(number: int) -> str:
    return f"52:54:00:00:00:{number:02x}"


def machine(number: int, mac_: str = "", profile: str = "compute") -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Machine",
        "metadata": {"name": f"gpu-{number:03}", "namespace": "netboot"},
        "spec": {"match": {"macs": [mac_ or mac(number)]}, "profile": profile},
    }


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(find(CACHE), tmp_path_factory.mktemp("resources-cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(own: Cluster) -> Kubectl:
    return Kubectl(find(CACHE) / "kubectl", own.admin, own.folder)


@pytest.fixture(scope="module")
def service(own: Cluster, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A site whose files were applied, by the commands of docs/custom-resources.md, and are not read any more."""
    root = tmp_path_factory.mktemp("resources-site")
    config = prepared(root)
    service = Service(config, root / "netboot.yaml")
    kubectl("create", "namespace", "netboot")
    for words in (("crds",), ("manifests", "--inventory")):
        piped(service, kubectl, *words)
    established(kubectl, *(kind.plural for kind in KINDS.values()))
    made = service.netboot("cluster", "kubeconfigs", "--inventory", "--admin-kubeconfig", str(own.admin))
    assert (made.returncode, made.stdout.splitlines()[0].split(",")[0]) == (
        0,
        f"wrote {root}/secrets/inventory.kubeconfig: netboot-inventory",
    )
    piped(service, kubectl, "inventory")
    with serving(config, service.file, service=service):
        wait_for(lambda: detail(service, "resources")["ok"], SECONDS)
        yield service


def prepared(root: Path) -> Config:
    config = make_site(root, workers=1, inventory=SITE)
    Store(config.store).set_channel("stable", add_image(config))
    file = root / "netboot.yaml"
    more = "inventory_kubernetes: {shipper: secrets/shipper.kubeconfig}\ninventory_limits: {removals_minimum: 20}\n"
    file.write_text(file.read_text() + more)  # the tests remove more than five machines within an hour
    return load_config(file)


def piped(service: Service, kubectl: Kubectl, *words: str) -> None:
    """`netboot cluster … | kubectl apply -f -`."""
    printed = service.netboot("cluster", *words)
    assert (printed.returncode, printed.stderr) == (0, "")
    path = kubectl.folder / "piped.yaml"
    path.write_text(printed.stdout)
    kubectl("apply", "-f", str(path))


def detail(service: Service, name: str) -> Any:
    return service.readyz()["details"].get(name, {"ok": False, "message": "", "faults": []})


def told(service: Service, name: str, what: Callable[[Any], object]) -> Any:
    """A detail, once it is such: what is read a second time may be another."""
    return wait_for(lambda: [said for said in [detail(service, name)] if what(said)], SECONDS)[0]


def boots(service: Service, number: int) -> bool:
    return service.outcome(mac(number)) == "boot"


def begun(service: Service, number: int) -> str:
    """Its boot, if a script was served; empty: it was refused."""
    with suppress(AssertionError):
        return service.boot(mac(number))
    return ""


def until(kubectl: Kubectl, what: str, *named: str) -> None:
    """`kubectl wait --for=…`."""
    kubectl("wait", f"--for={what}", *named, f"--timeout={SECONDS:.0f}s", seconds=SECONDS + 10)


def established(kubectl: Kubectl, *plurals: str) -> None:
    """Their definitions are, and an API server takes objects: it hears of that a moment later."""
    until(kubectl, "condition=Established", *(f"crd/{plural}.{GROUP}" for plural in plurals))
    wait_for(lambda: all(served(kubectl, plural) for plural in plurals), SECONDS)


def served(kubectl: Kubectl, plural: str) -> bool:
    with suppress(EndedError):
        kubectl("get", f"{plural}.{GROUP}", "-n", "netboot")
        return True
    return False


def may(account: Admin, path: str) -> bool:
    """Whether an account may read there, as the API server has it by now: of rights it hears a moment later."""
    return account("GET", path).status_code == 200


def in_order(service: Service) -> bool:
    return bool(detail(service, "resources")["ok"] and detail(service, "inventory")["ok"])


def whole(service: Service) -> bool:
    """Whether there are the site's two again, on the disk, too: where they come back one by one, all is in order before
    the last one has."""
    kept = {each.name for each in KeptResources(service.config.data, "netboot").read() if each.kind == "machine"}
    return kept == NAMES and in_order(service) and all(boots(service, number) for number in (1, 2))


@pytest.fixture(autouse=True)
def put_back(own: Cluster, service: Service, kubectl: Kubectl) -> Iterator[None]:
    """What a test that failed has left or taken away is put back: those that come later begin with the site's two."""
    yield
    there = machines_there(own)
    if there == NAMES and in_order(service):
        return
    for words in (("crds",), ("manifests", "--inventory")):
        piped(service, kubectl, *words)
    established(kubectl, *(kind.plural for kind in KINDS.values()))
    for name in sorted(machines_there(own) - NAMES):
        kubectl("delete", "-n", "netboot", f"machine.netboot.dev/{name}")
    piped(service, kubectl, "inventory")
    wait_for(lambda: whole(service), SECONDS)


def machines_there(own: Cluster) -> set[str]:
    """Names of the namespace's machines; none where their kind has no definition."""
    with closing(Admin(own)) as admin:
        found = admin("GET", f"/apis/{GROUP}/{VERSION}/namespaces/netboot/machines")
    return {each["metadata"]["name"] for each in found.json()["items"]} if found.ok else set()


def test_what_is_applied_is_served_within_seconds_and_what_is_deleted_no_more(
    service: Service, kubectl: Kubectl
) -> None:
    assert (boots(service, 1), boots(service, 10)) == (True, False)
    kubectl.apply("one", machine(10))
    wait_for(lambda: boots(service, 10), SECONDS)
    wait_for(lambda: in_order(service), SECONDS)  # of a loop that is quiet for ten seconds it is not known
    kubectl("delete", "-n", "netboot", "machine.netboot.dev/gpu-010")
    wait_for(lambda: service.outcome(mac(10)) == "unknown", SECONDS)


def test_a_bad_object_takes_out_itself_and_one_that_takes_macs_of_others_too(
    service: Service, kubectl: Kubectl
) -> None:
    kubectl.apply("holder", machine(11))
    wait_for(lambda: boots(service, 11), SECONDS)
    thief = machine(12, mac(11))
    thief["spec"]["match"]["macs"] += [mac(1), mac(2)]
    kubectl.apply("bad", {"apiVersion": "v1", "kind": "List", "items": [thief, machine(13, profile="compote")]})
    faults = [
        f"machine/gpu-012: spec.match.macs[{place}]: MAC {mac(of)} is the machine's 'gpu-{of:03}', which has it in "
        "force and keeps it"
        for place, of in enumerate((11, 1, 2))
    ]
    faults += ["machine/gpu-013: spec.profile: no profile is named 'compote'; did you mean 'compute'?"]
    said = told(service, "inventory", lambda said: said.get("faults") == faults)
    assert said["message"] == "4 faults; objects that are named are left out, all others are in force"
    metrics = service.text("/metrics")
    assert "netboot_inventory_left_out_faults 4.0" in metrics and "netboot_resources_age_seconds " in metrics
    assert [service.outcome(mac(number)) for number in (1, 2, 11, 13)] == ["boot", "boot", "boot", "unknown"]
    checked = service.netboot("config", "check")
    assert (checked.returncode, checked.stderr.splitlines()[-5:-1]) == (1, faults)
    kubectl.apply("good", machine(12))
    kubectl.apply("good", machine(13))
    wait_for(lambda: all(boots(service, number) for number in (11, 12, 13)), SECONDS)
    kubectl("delete", "-n", "netboot", *(f"machine.netboot.dev/gpu-{number:03}" for number in (11, 12, 13)))
    wait_for(lambda: in_order(service) and not boots(service, 11), SECONDS)


def test_nothing_else_writes_it(service: Service) -> None:
    body = {"machines": [{"declared": {"name": "gpu-099", "match": {"serial": "X1"}, "profile": "compute"}}]}
    refused = service.order("/v1/inventory/machines", **body)
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        REFUSED,
    )
    renamed = service.order("/v1/inventory/machines/gpu-001/rename", name="gpu-100")
    assert (renamed.status_code, renamed.json()["code"]) == (409, "inventory-read-only")
    shown = service.api("/v1/inventory/machines/gpu-001")
    assert (shown["file"], shown["line"], shown["declared"]["profile"]) == ("machine/gpu-001", 0, "compute")


def test_objects_say_how_machines_are(service: Service, kubectl: Kubectl) -> None:
    named = ("-n", "netboot", "machine.netboot.dev/gpu-003")
    kubectl.apply("said", machine(3))
    until(kubectl, "jsonpath={.status.phase}=NeverBooted", *named)
    boot = wait_for(lambda: begun(service, 3), SECONDS)  # of who judges and who serves, either may know it first
    for phase in ("InitrdStarted", "Switched", "Booted"):
        assert service.post(boot, mac(3), phase) == 204
    until(kubectl, "condition=Booted", *named)
    until(kubectl, "condition=InService=False", *named)
    # Judged once more, it is shown at once, and written a moment later.
    wait_for(lambda: said_of(kubectl.get(*named)["status"]) == said_of(service.api("/v1/machines/gpu-003")), SECONDS)
    status = kubectl.get(*named)["status"]
    shown = service.api("/v1/machines/gpu-003")
    assert {each["observedGeneration"] for each in status["conditions"]} == {1}
    image = shown["decision"]["image"]["digest"]
    assert status["image"] == {"in_force": image, "booted": image, "short": image[:12]}
    assert (status["phase"], status["node"], status["boot"]) == ("Booted", "gpu-003", boot)
    assert [(each["id"], each["phase"]) for each in status["boots"]] == [(boot, "Booted")]
    table = kubectl("get", "machines.netboot.dev", "-n", "netboot", "gpu-003").splitlines()
    assert table[0].split() == ["NAME", "PHASE", "IN", "SERVICE", "REASON", "IMAGE", "PROFILE", "AGE"]
    assert table[1].split()[:6] == ["gpu-003", "Booted", "False", "NoCluster", image[:12], "compute"]
    wide = kubectl("get", "machines.netboot.dev", "-n", "netboot", "gpu-003", "-o", "wide").splitlines()[0]
    assert wide.split()[8:] == ["NODE", "RACK", "CLASS", "CLUSTER", "ENABLED", "LAST", "BOOT"]
    wait_for(lambda: detail(service, "shipper")["ok"], SECONDS)
    assert "netboot_shipper_writes_total" in service.text("/metrics")
    kubectl("patch", *named, "--subresource=status", "--type=merge", "-p", '{"status": null}')
    wait_for(lambda: (kubectl.get(*named).get("status") or {}).get("phase") == "Booted", SECONDS)
    wait_for(lambda: "Booting" in kubectl("describe", *named).partition("Events:")[2], SECONDS)
    assert f"boot {boot} has begun, with image {image[:12]}" in kubectl("describe", *named)
    lease = wait_for(lambda: renewed(kubectl), SECONDS)
    assert (lease["holderIdentity"], lease["leaseDurationSeconds"]) == (platform.node(), 60)
    kubectl("delete", *named)
    wait_for(lambda: service.outcome(mac(3)) == "unknown", SECONDS)


def said_of(machine: Any) -> dict[str, tuple[str, str, str]]:
    """Its conditions, without what only objects have."""
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in machine["conditions"]}


def renewed(kubectl: Kubectl) -> Any:
    """The Lease by which what objects say is so now; None: it is over, or not there yet."""
    lease = (kubectl.get("-n", "netboot", "lease", "netboot-shipper") or {}).get("spec")
    late = lease is None or time.time() - datetime.fromisoformat(lease["renewTime"]).timestamp() >= 60
    return None if late else lease


def test_the_account_that_writes_statuses_writes_nothing_else(own: Cluster, service: Service) -> None:
    place = service.config.inventory_kubernetes
    assert place is not None
    assert place.shipper is not None
    account = Admin(own, yaml.safe_load(place.shipper.read_text())["users"][0]["user"]["token"])
    path = f"/apis/{GROUP}/{VERSION}/namespaces/netboot/machines"
    changed = machine(1) | {"spec": {**machine(1)["spec"], "enabled": False}, "status": {"phase": "Ready"}}
    assert account("PATCH", f"{path}/gpu-001?fieldManager=x&force=true", changed).status_code == 403
    changed["metadata"] = {"name": "gpu-001", "finalizers": ["netboot.dev/x"], "labels": {"x": "y"}}
    after = account("PATCH", f"{path}/gpu-001/status?fieldManager=x&force=true", changed)
    assert (after.status_code, after.json()["spec"]) == (200, machine(1)["spec"])
    assert not {"finalizers", "labels"} & after.json()["metadata"].keys()
    large = changed | {"status": {"phase": "x" * 65}}
    assert account("PATCH", f"{path}/gpu-001/status?fieldManager=x&force=true", large).status_code == 422
    missing = changed | {"metadata": {"name": "gpu-none"}}
    assert account("PATCH", f"{path}/gpu-none/status?fieldManager=x&force=true", missing).status_code == 404
    asked = [("GET", f"{path}/gpu-001"), ("POST", path), ("DELETE", f"{path}/gpu-001"), ("GET", "/api/v1/nodes")]
    asked += [("GET", "/api/v1/namespaces/netboot/secrets"), ("GET", f"{path.replace('machines', 'profiles')}")]
    lease = "/apis/coordination.k8s.io/v1/namespaces/netboot/leases"
    asked += [("GET", f"{lease}/netboot-shipper"), ("DELETE", f"{lease}/netboot-shipper"), ("POST", lease)]
    asked += [("PATCH", f"{lease}/another?fieldManager=x&force=true")]
    asked += [("GET", f"/apis/{GROUP}/{VERSION}/machines"), ("GET", f"{path.replace('/netboot/', '/default/')}")]
    found = {each: account(*each, machine(50) if each[0] == "POST" else None).status_code for each in asked}
    assert found == dict.fromkeys(asked, 403)
    account.close()


def test_the_policy_keeps_its_events_to_machines(own: Cluster, service: Service) -> None:
    place = service.config.inventory_kubernetes
    assert place is not None
    assert place.shipper is not None
    events = "/apis/events.k8s.io/v1/namespaces/netboot/events"
    admin, connection = Admin(own), connect(place.shipper)
    account = Admin(own, yaml.safe_load(place.shipper.read_text())["users"][0]["user"]["token"])
    told = KubeMachineEvents(connection, "netboot")
    name = told.tell(ObjectEvent("gpu-001", "a-uid", "Ready", "a note", good=True, at_ms=1_800_000_000_000))
    told.tell_again(name, 2, 1_800_000_001_000)
    kept = admin("GET", f"{events}/{name}").json()
    assert (kept["series"]["count"], kept["note"]) == (2, "a note")
    event = {key: kept[key] for key in ("eventTime", "reason", "note", "type", "reportingInstance", "action")}
    event |= {"apiVersion": "events.k8s.io/v1", "kind": "Event", "reportingController": "netboot.dev/shipper"}
    pod = {"apiVersion": "v1", "kind": "Pod", "name": "x", "namespace": "netboot"}
    wrongs: list[dict[str, Any]] = [{"regarding": pod}, {"reportingController": "kubelet"}]
    for number, wrong in enumerate(wrongs):
        body = {**event, "regarding": kept["regarding"], **wrong, "metadata": {"name": f"wrong-{number}"}}
        refused = account("POST", events, body)
        assert refused.status_code == 422, refused.text
        assert "Events of netboot-shipper are about Machines" in refused.text
        assert admin("POST", events, body).status_code == 201
        counted = {**body, "series": {"count": 2, "lastObservedTime": event["eventTime"]}}
        rewritten = account("PATCH", f"{events}/wrong-{number}?fieldManager=x&force=true", counted)
        assert (rewritten.status_code, "are about Machines" in rewritten.text) == (422, True), rewritten.text
    other = {**event, "regarding": kept["regarding"], "metadata": {"name": name}, "note": "another"}
    assert account("PATCH", f"{events}/{name}?fieldManager=x&force=true", other).status_code == 422
    assert account("DELETE", f"{events}/{name}").status_code == 403
    connection.close()
    account.close()
    admin.close()


class Storm:
    """What is known of forty machines that go through all phases together, one in each LOOK_SECONDS: who looks less
    often finds more of them at once."""

    NAMES = tuple(f"storm-{number:02}" for number in range(40))
    PHASES = tuple(each for each in Phase if each not in (Phase.SCRIPT_SERVED, Phase.FAILED))

    def __init__(self) -> None:
        self.count, self.boot = 0, 1
        self.began: float | None = None
        """When it was looked at first."""

    def changed(self) -> set[str]:
        now = time.monotonic()
        self.began = now if self.began is None else self.began
        passed = int((now - self.began) / LOOK_SECONDS)
        self.count = min(passed + 1, len(self.PHASES))
        return set(self.NAMES)

    def of_now(self) -> bool:
        return False

    def facts(self, names: Sequence[str]) -> Mapping[str, Facts | None]:
        return {name: self._facts(name) for name in names if name in self.NAMES}

    def _facts(self, name: str) -> Facts:
        trace = apply(None, script(name, self.boot))
        for place, phase in enumerate(self.PHASES[: self.count]):
            trace = apply(trace, event(name, self.boot, phase, 500 * place))
        declared = declared_as(name, machine(1)["spec"])
        assert declared is not None
        joined = Reason.JOINED if trace.phase(Phase.READY) else Reason.JOINING
        served = Reason.IN_SERVICE if trace.phase(Phase.READY) else Reason.NOT_JOINED
        found = [(ConditionType.JOINED, joined), (ConditionType.IN_SERVICE, served)]
        conditions = tuple(MachineCondition.of(kind, reason, "its words", START) for kind, reason in found)
        step = trace.state.value
        judged = Judged(machine=name, conditions=conditions, timers={}, step=step, boot=trace.boot, image=IMAGE)
        return Facts(declared, judged, (trace,), IMAGE)


@pytest.mark.usefixtures("service")
def test_a_storm_of_forty_machines_is_written_within_its_pace_by_the_api_server_s_own_count(
    own: Cluster, kubectl: Kubectl
) -> None:
    storm = Storm()
    with closing(Admin(own)) as admin:
        before = counted(admin)
        with calm(own, kubectl, storm) as [controller]:
            serving_all(kubectl, Storm.NAMES)
            wait_for(lambda: storm.count == len(Storm.PHASES) and controller.status().behind == 0, SECONDS)
            wait_for(lambda: controller.status().events_waiting == 0, SECONDS)
            controller.stop()
            assert storm.began is not None
            took, writes = time.monotonic() - storm.began, counted(admin) - before
            said = controller.status()
        assert (said.ok, said.failed, said.events_dropped) == (True, 0, 0)
        assert len(Storm.NAMES) <= writes - said_of_events(admin) <= len(Storm.NAMES) * len(Storm.PHASES) / 2
        assert writes <= 50 * took


class Calm(Storm):
    """A few that have gone through all phases, by boots of that number."""

    NAMES = tuple(f"calm-{number:02}" for number in range(6))

    def __init__(self, boot: int = 1) -> None:
        super().__init__()
        self.count, self.boot = len(self.PHASES), boot

    def changed(self) -> set[str]:
        return set()


@contextmanager
def calm(own: Cluster, kubectl: Kubectl, *known: Storm) -> Iterator[list[ShipperController]]:
    """Machines of which each of these is written by a process of its own, in a namespace where nobody else writes."""
    items = [machine(1) | {"metadata": {"name": name, "namespace": "default"}} for name in known[0].NAMES]
    kubectl.apply("calm", {"apiVersion": "v1", "kind": "List", "items": items})
    with closing(connect(own.admin)) as connection:
        found = [
            ShipperController(each, lambda: KubeMachineObjects(connection, "default"), SystemClock()) for each in known
        ]
        for each in found:
            each.start()
        try:
            yield found
        finally:
            for each in found:
                each.stop()
            kubectl("delete", "-n", "default", "machines.netboot.dev", "--all")


def serving_all(kubectl: Kubectl, names: Sequence[str]) -> None:
    until(kubectl, "condition=InService", "-n", "default", *(f"machine.netboot.dev/{name}" for name in names))


@pytest.mark.usefixtures("service")
def test_what_a_policy_refuses_of_some_holds_up_no_other(own: Cluster, kubectl: Kubectl) -> None:
    rule = {"apiGroups": [GROUP], "apiVersions": ["*"], "resources": ["machines/status"], "operations": ["UPDATE"]}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "not-these"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [
                {"expression": "object.metadata.name != 'calm-00'", "message": "not this one"},
                {"expression": "object.metadata.name != 'calm-01'", "message": "nor this", "reason": "Forbidden"},
            ],
        },
    }
    binding = policy | {
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "not-these", "validationActions": ["Deny"]},
    }
    kubectl.apply("not-these", {"apiVersion": "v1", "kind": "List", "items": [policy, binding]})
    try:
        kubectl.apply("first", machine(1) | {"metadata": {"name": Calm.NAMES[0], "namespace": "default"}})
        with closing(Admin(own)) as admin:
            path = f"/apis/{GROUP}/{VERSION}/namespaces/default/machines/{Calm.NAMES[0]}/status"
            body = machine(1) | {"metadata": {"name": Calm.NAMES[0]}, "status": {"phase": "x"}}
            asked = f"{path}?fieldManager=x&force=true"
            wait_for(lambda: admin("PATCH", asked, body).status_code == 422, SECONDS)
        with calm(own, kubectl, Calm()) as [controller]:
            serving_all(kubectl, Calm.NAMES[2:])
            wait_for(lambda: (controller.status().refused, controller.status().behind) == (2, 0), SECONDS)
            said = controller.status()
            by = f"is forbidden: {policy['kind']} 'not-these' with binding 'not-these' denied request"
            assert said.message == (
                f'status of machine/calm-00 is refused: 422 Invalid: machines.netboot.dev "calm-00" {by}: not this one'
                f'; status of machine/calm-01 is refused: 403 Forbidden: machines.netboot.dev "calm-01" {by}: nor this'
            )
            assert not said.ok
            kubectl("delete", "validatingadmissionpolicybinding", "not-these")
            serving_all(kubectl, Calm.NAMES)
            wait_for(lambda: controller.status().ok, SECONDS)
    finally:
        kubectl(
            "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "not-these", "--ignore-not-found"
        )


@pytest.mark.usefixtures("service")
def test_a_definition_without_a_status_has_taken_nothing(own: Cluster, kubectl: Kubectl) -> None:
    name, place = f"machines.{GROUP}", "/spec/versions/0/subresources"
    kubectl("patch", "crd", name, "--type=json", "-p", json.dumps([{"op": "remove", "path": place}]))
    try:
        with closing(Admin(own)) as admin:  # it is served as before for a moment
            status = f"/apis/{GROUP}/{VERSION}/namespaces/netboot/machines/gpu-001/status"
            wait_for(lambda: not may(admin, status), SECONDS)
        with calm(own, kubectl, Calm()) as [controller]:
            wait_for(lambda: controller.status().refused == len(Calm.NAMES), SECONDS)
            said = controller.status()
            assert (said.ok, said.written) == (False, 0)
            assert said.message.startswith(
                'status of machine/calm-00 is refused: 404 NotFound: machines.netboot.dev "calm-00" not found; '
            )
            back = [{"op": "add", "path": place, "value": {"status": {}}}]
            kubectl("patch", "crd", name, "--type=json", "-p", json.dumps(back))
            serving_all(kubectl, Calm.NAMES)
    finally:
        kubectl("patch", "crd", name, "--type=merge", "-p", json.dumps({"spec": {"versions": versions(kubectl, name)}}))


def versions(kubectl: Kubectl, name: str) -> Any:
    return [each | {"subresources": {"status": {}}} for each in kubectl.get("crd", name)["spec"]["versions"]]


@pytest.mark.usefixtures("service")
def test_two_that_write_one_status_do_not_write_as_fast_as_they_can(own: Cluster, kubectl: Kubectl) -> None:
    admin = Admin(own)
    before = counted(admin) - said_of_events(admin, "calm-")
    with calm(own, kubectl, Calm(), Calm(boot=2)) as found, closing(admin):
        wait_for(lambda: sum(each.status().overwritten for each in found) >= len(Calm.NAMES), SECONDS)
        assert counted(admin) - before - said_of_events(admin, "calm-") <= 2 * len(Calm.NAMES) * (MANY + 2)
        assert any("is overwritten: by netboot-shipper" in each.status().message for each in found)


def counted(admin: Admin) -> int:
    """Writes of statuses of Machines, and of Events, as the API server counts its requests."""
    metrics = text_string_to_metric_families(admin("GET", "/metrics").text)
    [requests] = [each for each in metrics if each.name == "apiserver_request"]
    ours = [
        each.value
        for each in requests.samples
        if each.labels["verb"] in ("APPLY", "PATCH", "POST")
        and (each.labels["resource"], each.labels["subresource"]) in (("machines", "status"), ("events", ""))
        and each.labels["group"] in (GROUP, "events.k8s.io")
    ]
    return round(sum(ours))


def said_of_events(admin: Admin, of: str = "storm-") -> int:
    """Writes of Events about machines whose names begin so."""
    events = admin("GET", "/apis/events.k8s.io/v1/namespaces/default/events").json()["items"]
    of_storm = [each for each in events if each["regarding"]["name"].startswith(of)]
    return sum((each.get("series") or {}).get("count", 1) for each in of_storm)


def test_the_account_may_read_them_and_nothing_else(own: Cluster, service: Service) -> None:
    account = reader(own, service)
    ours = f"/apis/{GROUP}/{VERSION}/namespaces"
    asked = {
        f"{ours}/netboot/machines": 200,
        f"{ours}/netboot/machines/gpu-001": 403,
        f"{ours}/default/machines": 403,
        f"/apis/{GROUP}/{VERSION}/machines": 403,
        "/api/v1/namespaces/netboot": 200,
        "/api/v1/namespaces/default": 403,
        "/api/v1/namespaces": 403,
        "/api/v1/namespaces/netboot/secrets": 403,
        "/api/v1/nodes": 403,
    }
    assert {path: account("GET", path).status_code for path in asked} == asked
    assert account("POST", f"{ours}/netboot/machines", machine(50)).status_code == 403
    assert account("DELETE", f"{ours}/netboot/machines/gpu-001").status_code == 403
    account.close()


def test_a_fleet_that_is_deleted_waits_for_a_person(service: Service, kubectl: Kubectl) -> None:
    with stopped(service.processes()["resources"]["pid"]):  # both go at once: one alone would be believed
        kubectl("delete", "-n", "netboot", "machines.netboot.dev", "--all")
    waits = told(service, "inventory", lambda said: said.get("pending"))["pending"]
    assert (waits["removed"], waits["of"], waits["names"]) == (2, 2, ["gpu-001", "gpu-002"])
    assert [boots(service, number) for number in (1, 2)] == [True, True]
    piped(service, kubectl, "inventory")
    wait_for(lambda: whole(service), SECONDS)


def test_a_definition_that_is_removed_with_all_its_objects_removes_nothing(service: Service, kubectl: Kubectl) -> None:
    """Of machines, and of windows, without which anything may begin at any time: not even from the file."""
    kept = KeptResources(service.config.data, "netboot")
    before = kept.read()
    assert kept.uid == kubectl("get", "namespace", "netboot", "-o", "jsonpath={.metadata.uid}")
    stays = machine(40)
    stays["metadata"]["finalizers"] = ["test.netboot.dev/stays"]
    kubectl.apply("stays", stays)
    try:
        wait_for(lambda: boots(service, 40), SECONDS)
        kubectl("delete", "crd", f"machines.{GROUP}", "--wait=false")
        wait_for(lambda: "with the definition of their kind" in detail(service, "resources")["message"], SECONDS)
        assert {each.shown for each in kept.read()} == {each.shown for each in before} | {"machine/gpu-040"}
    finally:
        release = '[{"op": "remove", "path": "/metadata/finalizers"}]'
        kubectl("patch", "-n", "netboot", "machine.netboot.dev/gpu-040", "--type=json", "-p", release)
    kubectl("delete", "crd", f"machines.{GROUP}", f"maintenancewindows.{GROUP}", "--ignore-not-found")
    wait_for(lambda: "the apiserver has no " in detail(service, "resources")["message"], SECONDS)
    assert {each.shown for each in kept.read()} == {each.shown for each in before} | {"machine/gpu-040"}
    assert [boots(service, number) for number in (1, 2)] == [True, True]
    windows = service.api("/v1/freeze")["windows"]
    assert [each["name"] for each in windows] == ["nights"]
    piped(service, kubectl, "crds")
    established(kubectl, "machines", "maintenancewindows")
    piped(service, kubectl, "inventory")
    wait_for(lambda: whole(service), SECONDS)
    named = ("-n", "netboot", "machine.netboot.dev/gpu-002")
    until(kubectl, "jsonpath={.status.node}=gpu-002", *named)


def test_an_account_without_rights_finds_no_empty_fleet(own: Cluster, service: Service) -> None:
    admin, account = Admin(own), reader(own, service)
    binding = admin("GET", BINDING).json()
    assert admin("DELETE", BINDING).status_code == 200
    try:
        wait_for(lambda: not may(account, f"/apis/{GROUP}/{VERSION}/namespaces/netboot/machines"), SECONDS)
        again(service)
        wait_for(lambda: "lacks a right" in detail(service, "resources")["message"], SECONDS)
        assert [boots(service, number) for number in (1, 2)] == [True, True]
    finally:
        kept = {name: binding[name] for name in ("apiVersion", "kind", "roleRef", "subjects")}
        made = admin("POST", BINDING.rpartition("/")[0], kept | {"metadata": {"name": "netboot-inventory"}})
    assert made.status_code == 201
    wait_for(lambda: in_order(service), SECONDS)
    account.close()
    admin.close()


def reader(own: Cluster, service: Service) -> Admin:
    """The account that reads the inventory, by plain HTTP."""
    place = service.config.inventory_kubernetes
    assert place is not None
    return Admin(own, yaml.safe_load(place.kubeconfig.read_text())["users"][0]["user"]["token"])


def again(service: Service) -> None:
    """Its process is started again, and asks for everything: as it does by itself after ten minutes."""
    before = service.processes()["resources"]["pid"]
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: service.processes()["resources"]["pid"] not in (before, None), SECONDS)


class Followed:
    """An API server's namespace, and what follows it."""

    def __init__(self, own: Cluster, admin: Admin, data: Path) -> None:
        self._admin, self._path = admin, f"/apis/{GROUP}/{VERSION}/namespaces/default"
        self._kept = KeptResources(data, "default")
        self.declarations: Declarations = self._kept
        connection, writes = connect(own.admin), KeptResources(data, "default")  # one for each thread, as in a service
        self.controller = ResourcesController(
            KINDS, lambda: KubeResources(connection, "default"), writes, None, None, lambda _: None, SystemClock()
        )
        self.controller.start()
        wait_for(self._path_of_file.exists)

    @property
    def _path_of_file(self) -> Path:
        [path] = self._kept.paths()
        return Path(path)

    def declare(self, items: Mapping[Key, Spec]) -> None:
        for (kind, name), spec in items.items():
            path = f"{self._path}/{KINDS[kind].plural}/{name}?fieldManager=contract&force=true"
            document = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KINDS[kind].kind, "metadata": {"name": name}}
            answer = self._admin("PATCH", path, document | {"spec": spec})
            assert answer.status_code in (200, 201), answer.text
        wait_for(lambda: {**self._specs(), **items} == self._specs(), SECONDS)

    def remove(self, *keys: Key) -> None:
        for kind, name in keys:
            assert self._admin("DELETE", f"{self._path}/{KINDS[kind].plural}/{name}").status_code == 200
        wait_for(lambda: not self._specs().keys() & set(keys), SECONDS)

    def lose(self) -> None:
        """What follows is ended before: it would write it again within half a second."""
        self.controller.stop()
        self.controller._threads[-1].join()
        self._path_of_file.unlink()

    def _specs(self) -> dict[Key, Any]:
        return {(each.kind, each.name): each.spec for each in self._kept.read()}

    def close(self) -> None:
        self.controller.stop()
        for kind in KINDS.values():
            assert self._admin("DELETE", f"{self._path}/{kind.plural}").status_code == 200


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_place(case: Callable[[World], None], own: Cluster, tmp_path: Path) -> None:
    admin = Admin(own)
    world = Followed(own, admin, tmp_path)
    try:
        case(world)
    finally:
        world.close()
        admin.close()


def test_an_api_server_that_is_away_and_comes_back_compacted(own: Cluster, service: Service, kubectl: Kubectl) -> None:
    """The last one: killed, while the service is started again; then etcd forgets, and it is started again."""
    watching = KubeResources(connect(own.admin), "netboot").watch("machine", 600)
    listed = next(watching)
    assert isinstance(listed, Listed)
    apiserver = own.processes["kube-apiserver"]
    apiserver.kill()
    apiserver.wait(60)
    wait_for(lambda: not detail(service, "resources")["ok"], SECONDS)
    assert service.stop() == 0
    service.start()
    assert [boots(service, number) for number in (1, 2)] == [True, True]
    said = wait_for(lambda: said_away(service), SECONDS)
    assert said["age_seconds"] > 0
    assert "; what counts is what there was at 20" in said["message"]
    compacted(own)
    lab._start(own, "kube-apiserver", list(apiserver.args))  # type: ignore[arg-type]
    admin = Admin(own)
    wait_for(lambda: admin("GET", "/readyz").status_code == 200, SECONDS)
    wait_for(lambda: served(kubectl, "machines"), SECONDS)
    kubectl.apply("after", machine(20))
    wait_for(lambda: boots(service, 20), SECONDS)
    wait_for(lambda: in_order(service), SECONDS)
    told = next(each for each in watching if not isinstance(each, Same))  # its place is forgotten: all are listed again
    assert isinstance(told, Listed)
    assert {each.name for each in told.resources} == {"gpu-001", "gpu-002", "gpu-020"}
    named = ("-n", "netboot", "machine.netboot.dev/gpu-020")
    until(kubectl, "jsonpath={.status.reason}", *named)
    wait_for(lambda: detail(service, "shipper")["ok"], SECONDS)
    kubectl("delete", "-n", "netboot", "machine.netboot.dev/gpu-020")
    gone = next(each for each in watching if isinstance(each, Changed) and not each.there)  # its status changes before
    assert gone.resource.name == "gpu-020"
    watching.close()  # type: ignore[attr-defined]
    admin.close()


def said_away(service: Service) -> Any:
    said = detail(service, "resources")
    return said if "apiserver" in said["message"] and said.get("age_seconds") is not None else None


def compacted(own: Cluster) -> None:
    """etcd forgets all but what there is now (https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/)."""
    arguments = [str(each) for each in own.processes["etcd"].args]  # type: ignore[union-attr]
    url = next(each.partition("=")[2] for each in arguments if each.startswith("--listen-client-urls"))

    def asked(path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(f"{url}/v3/kv/{path}", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    asked("put", {"key": "bmV0Ym9vdA==", "value": ""})
    revision = asked("range", {"key": "bmV0Ym9vdA=="})["header"]["revision"]
    asked("compaction", {"revision": revision, "physical": True})
