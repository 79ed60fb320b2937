"""Drain and reboot before a real control plane: a budget that is respected, a process that is killed in the middle, the
program on the machine that takes the order, and who else may write one."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from images.node.agent import kubelet
from images.node.orders import reboot
from netboot.join.node_drains import DO_NOT_DISRUPT, ORDER
from netboot.join.ports import MARK
from tests.cluster.threats.chassis import Chassis
from tests.cluster.threats.live_site import BUDGETS, NODES, SETS, LiveSite
from tests.kubelets import condition
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
REGISTERED = {"key": "netboot.dev/unchecked", "effect": "NoExecute"}
PODS = "/api/v1/namespaces/default/pods"
LABELS = {"app": "drained"}
FOR_OURS = "annotations under netboot.dev/ are for netboot's nodes account, or the group netboot:break-glass, to write"
CONTAINERS = [{"name": "work", "image": "localhost/pause:1"}]


class Kubelet:
    """A machine that has joined with the shipped agent, whose Node is Ready; what its kubelet says is said here."""

    def __init__(self, site: LiveSite, chassis: Chassis, root: Path) -> None:
        self.site, self.chassis, self.name, self.root = site, chassis, chassis.name, root
        site.agent(root, site.power_on(chassis))
        env = root / "run/netboot/boot.env"
        env.write_text(f"{env.read_text()}NAME={self.name}\n")
        self.handed = root / "handed"
        self.handed.mkdir()
        (self.handed / "kubeconfig").write_bytes((root / kubelet.KUBECONFIG[1:]).read_bytes())
        (self.handed / "pair").write_bytes((root / kubelet.PAIR[1:]).read_bytes())
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": MARK}}
        self.ask("POST", NODES, node | {"spec": {"taints": [REGISTERED]}}, 201)
        self.beat()

    def ask(self, method: str, path: str, body: Any, status: int) -> Any:
        kind = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
        with requests.Session() as session:
            session.trust_env, session.cert = False, str(self.handed / "pair")
            session.verify, session.headers["Content-Type"] = str(self.site.cluster.folder / "ca.crt"), kind
            answer = session.request(method, self.site.cluster.url + path, data=json.dumps(body), timeout=60)
        assert answer.status_code == status, answer.text
        return answer.json()

    def beat(self) -> None:
        """It is Ready, now."""
        self.ask("PATCH", f"{NODES}/{self.name}/status", {"status": {"conditions": [condition("Ready")]}}, 200)

    @contextmanager
    def running(self) -> Iterator[None]:
        """It says so now and then, or it would not be Ready after some fifty seconds."""
        ends = threading.Event()

        def beat() -> None:
            while not ends.wait(5.0):
                try:
                    self.beat()
                except OSError:
                    continue  # the next one comes soon enough
                except AssertionError as error:
                    if '"code":403' in str(error) or '"code":422' in str(error):
                        raise

        beating = threading.Thread(target=beat, daemon=True)
        beating.start()
        try:
            yield
        finally:
            ends.set()
            beating.join(60)

    def reboot(self) -> int:
        """The program that systemd starts when an order is there; 0: the machine reboots."""
        memory = self.root / "memory"
        memory.mkdir(exist_ok=True)
        handed = {"CREDENTIALS_DIRECTORY": str(self.handed), "RUNTIME_DIRECTORY": str(memory), "NODE_NAME": self.name}
        return reboot.run(self.root, handed)

    def node(self) -> Any:
        return self.site.admin("GET", f"{NODES}/{self.name}").json()

    def told(self) -> str | None:
        """The order on its Node."""
        annotations: dict[str, str] = self.node()["metadata"].get("annotations", {})
        return annotations.get(ORDER)

    def drained(self) -> str | None:
        """The value of our taint."""
        taints = self.node()["spec"].get("taints", [])
        return next((one["value"] for one in taints if one["key"] == "netboot.dev/drain"), None)


def a_pod_of_a_set(machine: Kubelet, annotations: dict[str, str] | None = None) -> str:
    """A ReplicaSet's one Pod, which runs on the machine; its name."""
    site = machine.site
    tolerations = [{"key": "netboot.dev/unchecked", "operator": "Exists"}]  # its gate is shut all the time
    template = {
        "metadata": {"labels": LABELS, "annotations": annotations or {}},
        "spec": {"containers": CONTAINERS, "tolerations": tolerations},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "s"}, "spec": spec}
    made = site.admin("POST", SETS, body)
    assert made.status_code == 201, made.text
    pods = wait_for(lambda: pods_of(site, made.json()["metadata"]["uid"]), 180)
    name: str = pods[0]["metadata"]["name"]
    target = {"apiVersion": "v1", "kind": "Node", "name": machine.name}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    bound = site.admin("POST", f"{PODS}/{name}/binding", binding)
    assert bound.status_code == 201, bound.text
    status = {"phase": "Running", "conditions": [condition("Ready")]}
    machine.ask("PATCH", f"{PODS}/{name}/status", {"status": status}, 200)
    return name


def pods_of(site: LiveSite, uid: str) -> list[Any]:
    """Of the ReplicaSet with this uid: those of one that another test deleted may be there still."""
    pods = site.admin("GET", f"{PODS}?labelSelector=app%3Ddrained").json()["items"]
    return [pod for pod in pods if uid in [owner["uid"] for owner in pod["metadata"].get("ownerReferences", ())]]


def a_budget(site: LiveSite) -> None:
    """The Pod may not be disrupted, and the apiserver knows."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": LABELS}}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
    assert site.admin("POST", BUDGETS, body).status_code == 201

    def counted() -> bool:
        status = site.admin("GET", f"{BUDGETS}/b").json().get("status", {})
        return (status.get("currentHealthy"), status.get("disruptionsAllowed")) == (1, 0)

    wait_for(counted, 180)


def a_mirror_pod(machine: Kubelet) -> None:
    uid = machine.node()["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": machine.name, "uid": uid, "controller": True}
    metadata = {
        "name": f"static-{machine.name}",
        "annotations": {"kubernetes.io/config.mirror": "1"},
        "ownerReferences": [owner],
    }
    spec = {"nodeName": machine.name, "containers": CONTAINERS, "tolerations": [{"operator": "Exists"}]}
    machine.ask("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, 201)


def order(site: LiveSite, *arguments: str) -> str:
    done = site.service.netboot("machine", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def words(site: LiveSite, name: str) -> str:
    """How far the order of a machine is."""
    drains = site.service.api("/v1/drains")["drains"]
    return next((str(one["state"]["words"]) for one in drains if one["machine"] == name and one["state"]), "")


def in_service(site: LiveSite, name: str) -> str:
    """Its reason; empty: the machine was not judged yet."""
    conditions = site.service.api(f"/v1/machines/{name}")["conditions"]
    return next((str(one["reason"]) for one in conditions if one["type"] == "InService"), "")


def cordoned(machine: Kubelet) -> bool:
    """Somebody cordons it, as `kubectl cordon` does; False: somebody else wrote meanwhile."""
    node = machine.node()
    node["spec"]["unschedulable"] = True
    return bool(machine.site.admin("PUT", f"{NODES}/{machine.name}", node).status_code == 200)


def killed(site: LiveSite) -> None:
    """The process that carries orders out ends where it is, and is started again."""
    before = site.service.processes()["nodes-default"]["pid"]
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: site.restarted("nodes-default", before), 180)


@pytest.mark.usefixtures("no_workload_left")
def test_a_machine_is_drained_within_budgets_told_to_reboot_and_let_go_in_its_next_boot(
    site: LiveSite, tmp_path: Path
) -> None:
    chassis = site.fresh()
    machine = Kubelet(site, chassis, tmp_path / "first")
    with machine.running():
        drained_and_told(site, machine)
    again = Kubelet(site, chassis, tmp_path / "second")
    over = f"{machine.name} is not to be drained"
    wait_for(lambda: over in order(site, "undrain", machine.name, "--dry-run"), 180, 1.0)
    assert "reboot          done " in order(site, "show", machine.name)
    assert (again.drained(), again.reboot()) == (None, 1)


def drained_and_told(site: LiveSite, machine: Kubelet) -> None:
    """Until the program on it says that it is to reboot."""
    wait_for(lambda: "NodeRegistered" in site.phases(chassis_boot(site, machine.name)), 180)
    pod = a_pod_of_a_set(machine)
    a_mirror_pod(machine)
    a_budget(site)
    assert machine.reboot() == 1, "there is no order"
    order(site, "reboot", machine.name, "--reason", "new image", "--deadline", "10m")
    wait_for(lambda: "would violate the pod's disruption budget" in words(site, machine.name), 180)
    assert machine.drained() == "Draining"
    wait_for(lambda: in_service(site, machine.name) == "Draining", 180)
    killed(site)
    assert machine.reboot() == 1, "it is not drained"
    assert site.admin("DELETE", f"{BUDGETS}/b").status_code == 200
    wait_for(lambda: site.admin("GET", f"{PODS}/{pod}").json()["metadata"].get("deletionTimestamp"), 180)
    assert machine.told() is None, "who is leaving is waited for"
    machine.ask("DELETE", f"{PODS}/{pod}", {"gracePeriodSeconds": 0}, 200)
    told = wait_for(lambda: machine.told(), 180)
    assert machine.drained() == "Drained"
    assert site.admin("GET", f"{PODS}/static-{machine.name}").status_code == 200
    killed(site)
    assert machine.told() == told, "the same order, to the letter"
    assert [machine.reboot(), machine.reboot()] == [0, 1]


def chassis_boot(site: LiveSite, name: str) -> str:
    current = site.service.api(f"/v1/machines/{name}")["current"]
    return str(current["boot"]) if current else "00000000-0000-8000-8000-000000000000"


def test_a_drain_is_taken_off_and_nobody_else_writes_an_order(site: LiveSite, tmp_path: Path) -> None:
    machine = Kubelet(site, site.fresh(), tmp_path)
    with machine.running():
        wait_for(lambda: "NodeRegistered" in site.phases(chassis_boot(site, machine.name)), 180)
        order(site, "drain", machine.name, "--reason", "DIMM 4")
        wait_for(lambda: machine.drained() == "Drained", 180)
        forged = {"metadata": {"annotations": {ORDER: "{}"}}}
        for at in ("", "/status"):
            said = machine.ask("PATCH", f"{NODES}/{machine.name}{at}", forged, 422)["message"]
            assert said.endswith(FOR_OURS)
        wait_for(lambda: cordoned(machine))
        order(site, "reboot", machine.name, "--reason", "new image")
        wait_for(lambda: "somebody cordoned it" in words(site, machine.name), 180)
        assert machine.reboot() == 1
        order(site, "undrain", machine.name)
        wait_for(lambda: machine.drained() is None, 180)
        assert machine.node()["spec"]["unschedulable"] is True, "what others put on stays"


@pytest.mark.usefixtures("no_workload_left")
def test_a_pod_s_veto_puts_a_drain_off_for_as_long_as_its_class_lets_it(site: LiveSite, tmp_path: Path) -> None:
    machine = Kubelet(site, site.fresh("veto"), tmp_path)
    with machine.running():
        wait_for(lambda: "NodeRegistered" in site.phases(chassis_boot(site, machine.name)), 180)
        pod = a_pod_of_a_set(machine, {DO_NOT_DISRUPT: "true"})
        order(site, "drain", machine.name, "--reason", "DIMM 4")
        said = f"default/{pod} may not be disrupted ({DO_NOT_DISRUPT}) until "
        wait_for(lambda: words(site, machine.name).startswith(said), 180)
        assert said in order(site, "drains")
        assert "deletionTimestamp" not in site.admin("GET", f"{PODS}/{pod}").json()["metadata"]
        with site.inventory() as (declared, put):
            (vetoed,) = [one for one in declared["classes"] if one["name"] == "vetoed"]
            vetoed["vetoes"]["max_wait"] = "1s"  # since the drain was ordered, so that it is over now, and not before
            put()
            wait_for(lambda: "deletionTimestamp" in site.admin("GET", f"{PODS}/{pod}").json()["metadata"], 180)
        machine.ask("DELETE", f"{PODS}/{pod}", {"gracePeriodSeconds": 0}, 200)
        wait_for(lambda: machine.drained() == "Drained", 180)
