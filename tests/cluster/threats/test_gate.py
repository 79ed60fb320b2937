"""The gate before a real control plane: nodes write with their own certificates, the service moves the taint; and who
may write what of a Node, each refusal as it is said."""

import functools
import hashlib
import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import requests

from images.node.agent import kubelet
from images.node.status import __main__ as status
from lab.kube.accounts import Admin
from netboot.join.ports import MARK
from tests import soft_tpm
from tests.cluster.threats.conftest import ROLE
from tests.cluster.threats.live_site import NODES, LiveSite
from tests.kubelets import pem, renewal, serving
from tests.processes import wait_for
from tests.soft_tpm import new_key

pytestmark = pytest.mark.cluster
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
REGISTERED = {"key": "netboot.dev/unchecked", "effect": "NoExecute"}
FOREIGN = {"key": "example.com/mine", "effect": "NoSchedule"}
PLAIN = {"metadata": {"annotations": {"example.com/x": "y"}}}
STRATEGIC, MERGE = "application/strategic-merge-patch+json", "application/merge-patch+json"
FOR_ITSELF = (
    "the condition netboot.dev/Healthy and the annotations netboot.dev/health-* are for the node {} itself to write"
)
CREDENTIAL = "the annotation netboot.dev/health-credential must name the certificate that the node writes with"
OURS = "{} under netboot.dev/ are for netboot's nodes account, or the group netboot:break-glass, to {}"


def credential_of(session: requests.Session) -> str:
    """As the apiserver calls the certificate of a session."""
    (certificate, *_) = Path(str(session.cert)).read_text().split("-----END CERTIFICATE-----")
    der = ssl.PEM_cert_to_DER_cert(certificate + "-----END CERTIFICATE-----")
    return f"X509SHA256={hashlib.sha256(der).hexdigest()}"


class Node:
    """A machine that has joined, its Node, and its kubelet's session."""

    def __init__(self, site: LiveSite, taints: tuple[dict[str, str], ...] = (REGISTERED,), kind: str = "k") -> None:
        self.site, self.chassis = site, site.fresh(kind)
        self.name = self.chassis.name
        self.boot(taints)

    def boot(self, taints: tuple[dict[str, str], ...] = (REGISTERED,), machine: soft_tpm.Machine | None = None) -> None:
        """Power on, unless it is already; join, register with the labels that it is told."""
        machine = machine or self.site.power_on(self.chassis)
        told, self.session = self.site.join(machine)
        self.credential, self.boot_id, self.labels = credential_of(self.session), machine.boot, told["labels"]
        self.register(taints)

    def register(self, taints: tuple[dict[str, str], ...] = (REGISTERED,)) -> None:
        """As its kubelet does."""
        metadata = {"name": self.name, "labels": self.labels}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": list(taints)}}
        made = self.session.post(f"{self.site.cluster.url}{NODES}", json=body, timeout=60)
        assert made.status_code == 201, made.text

    def patch(self, session: requests.Session, body: Any, at: str = "/status", kind: str = STRATEGIC) -> Any:
        url = f"{self.site.cluster.url}{NODES}/{self.name}{at}"
        return session.patch(url, data=json.dumps(body), headers={"Content-Type": kind}, timeout=60)

    def say(self, how: str = "True", session: requests.Session | None = None, credential: str = "") -> Any:
        """As `node.status` writes it."""
        session = session or self.session
        return self.patch(session, said(how, credential or credential_of(session)))

    def get(self) -> Any:
        return self.site.admin("GET", f"{NODES}/{self.name}").json()

    def taints(self) -> list[tuple[str, str, str]]:
        """Those of ours, and foreign ones of this test."""
        found = self.get()["spec"].get("taints", [])
        keys = ("netboot.dev/", "example.com/")
        return [(one["key"], one.get("value", ""), one["effect"]) for one in found if one["key"].startswith(keys)]

    def becomes(self, *taints: tuple[str, str, str]) -> None:
        wait_for(lambda: self.taints() == list(taints), 180)


def said(how: str, credential: str) -> dict[str, Any]:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    condition = {"type": "netboot.dev/Healthy", "status": how, "reason": "r", "message": f"it is {how}"}
    annotations = {"netboot.dev/health-credential": credential, "netboot.dev/health-checks": "cpus=pass"}
    conditions = [condition | {"lastHeartbeatTime": now, "lastTransitionTime": now}]
    return {"metadata": {"annotations": annotations}, "status": {"conditions": conditions}}


UNCHECKED = ("netboot.dev/unchecked", "", "NoExecute")
CLOSED = ("netboot.dev/unchecked", "ChecksFailed", "NoSchedule")
MINE = ("example.com/mine", "", "NoSchedule")


def test_the_program_on_the_machine_opens_the_gate_with_what_the_agent_left(site: LiveSite, tmp_path: Path) -> None:
    """The shipped agent, the shipped program that writes, the kubelet's pair; a Node, and nobody's hand on a taint."""
    chassis = site.fresh()
    site.agent(tmp_path, site.power_on(chassis))
    handed, memory = tmp_path / "handed", tmp_path / "memory"
    handed.mkdir()
    memory.mkdir()
    (handed / "kubeconfig").write_bytes((tmp_path / kubelet.KUBECONFIG[1:]).read_bytes())
    (handed / "pair").write_bytes((tmp_path / kubelet.PAIR[1:]).read_bytes())
    session = requests.Session()
    session.trust_env, session.cert = False, str(handed / "pair")
    session.verify = str(site.cluster.folder / "ca.crt")
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": chassis.name, "labels": MARK}}
    made = session.post(f"{site.cluster.url}{NODES}", json=body | {"spec": {"taints": [REGISTERED]}}, timeout=60)
    assert made.status_code == 201, made.text
    session.close()
    check = {"name": "cpus", "status": "pass", "severity": "major", "summary": "", "ms": 1}
    (tmp_path / "run/netboot/health.json").write_text(json.dumps({"checks": [check]}))
    environment = {"CREDENTIALS_DIRECTORY": str(handed), "RUNTIME_DIRECTORY": str(memory), "NODE_NAME": chassis.name}
    assert status.run(tmp_path, environment) == 0

    def node() -> Any:
        return site.admin("GET", f"{NODES}/{chassis.name}").json()

    wait_for(lambda: not any(t["key"] == "netboot.dev/unchecked" for t in node()["spec"].get("taints", [])), 180)
    (condition,) = [one for one in node()["status"]["conditions"] if one["type"] == "netboot.dev/Healthy"]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "True",
        "ChecksPassed",
        "all checks (1) are in order",
    )
    open_ = f"the gate of {chassis.name} is open"
    (site_line,) = wait_for(lambda: [line for line in site.service.log.splitlines() if open_ in line])
    assert "is open: all checks (1) are in order" in site_line


def test_it_closes_when_a_check_fails_and_opens_when_the_cause_is_gone(site: LiveSite) -> None:
    """What others put on the Node stays through all of it."""
    node = Node(site, (FOREIGN, REGISTERED))
    for how, taints in (
        ("Unknown", (MINE, UNCHECKED)),
        ("True", (MINE,)),
        ("False", (MINE, CLOSED)),
        ("True", (MINE,)),
    ):
        assert node.say(how).status_code == 200
        node.becomes(*taints)


def test_others_are_told_of_the_gate_and_what_they_make_of_it_opens_none(
    site: LiveSite, admin: requests.Session
) -> None:
    """The part of the Node Readiness Controller is played: by the shipped rule it has a taint of its own follow."""
    node = Node(site)
    hand = {"key": "readiness.k8s.io/netboot", "effect": "NoSchedule"}

    def told() -> tuple[str, str]:
        conditions = node.get()["status"].get("conditions", [])
        return next(
            ((one["status"], one["reason"]) for one in conditions if one["type"] == "netboot.dev/Gate"), ("", "")
        )

    def follow(*, on: bool) -> None:
        """As removeTaint and addTaintBySpec there do: the whole list, as it was read."""
        for _ in range(20):
            read = node.get()
            others = [one for one in read["spec"].get("taints", []) if one["key"] != hand["key"]]
            metadata = {"resourceVersion": read["metadata"]["resourceVersion"]}
            body = {"metadata": metadata, "spec": {"taints": [*others, *([hand] if on else [])]}}
            answer = node.patch(admin, body, "", MERGE)
            if answer.status_code != 409:
                break
        assert answer.status_code == 200, answer.text

    def hands() -> list[Any]:
        return [one for one in node.get()["spec"].get("taints", []) if one["key"] == hand["key"]]

    wait_for(lambda: told() == ("False", "Unchecked"), 180)
    follow(on=True)
    assert node.say().status_code == 200
    wait_for(lambda: told() == ("True", "Open"), 180)
    assert (node.taints(), hands()) == ([], [hand])
    follow(on=False)
    assert node.say("False").status_code == 200
    wait_for(lambda: told() == ("False", "ChecksFailed"), 180)
    assert (node.taints(), hands()) == ([CLOSED], [])
    follow(on=True)
    follow(on=False)  # as where the rule is deleted, or is mistaken
    ordinary = Node(site)
    assert ordinary.say().status_code == 200
    ordinary.becomes()
    assert (node.taints(), told()) == ([CLOSED], ("False", "ChecksFailed")), "the gate has had its time"
    assert node.say().status_code == 200
    node.becomes()  # a Node that stays closed would use up the budget of later tests


def test_an_operator_accepts_a_machine_in_spite_of_its_checks_until_no_more(site: LiveSite) -> None:
    """And no Node that the machine's boot did not register."""

    def order(act: str, node: Node, *more: str) -> None:
        done = site.service.netboot("machine", act, node.name, "--reason", "fan 3", *more)
        assert done.returncode == 0, done.stderr

    def unlabelled(node: Node) -> bool:
        return "netboot.dev/accepted" not in node.get()["metadata"]["labels"]

    failing, silent, other = Node(site), Node(site), Node(site)
    assert failing.say("False").status_code == 200
    wait_for(lambda: "NodeRegistered" in site.phases(other.boot_id), 180)
    assert site.admin("DELETE", f"{NODES}/{other.name}").status_code == 200
    other.register()
    for node in (failing, silent, other):
        order("accept", node, "--until", "1h")
    for node in (failing, silent):
        node.becomes()
        assert not unlabelled(node)
    for node, value in ((failing, "ChecksFailed"), (silent, "AcceptanceEnded")):
        order("unaccept", node)
        node.becomes(("netboot.dev/unchecked", value, "NoSchedule"))
        wait_for(functools.partial(unlabelled, node), 180)
        assert node.say().status_code == 200
        node.becomes()
    assert other.taints() == [UNCHECKED], "the gate has had its time"
    order("unaccept", other)


def test_what_becomes_of_a_machine_is_an_event_on_its_node_in_the_words_of_the_api(
    site: LiveSite, admin: requests.Session
) -> None:
    node = Node(site)
    beaten = [float("-inf")]

    def beat() -> None:
        """It is Ready, and says so again: one that does not for some fifty seconds is not."""
        if time.monotonic() - beaten[0] >= 10.0:
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
            assert node.patch(node.session, {"status": {"conditions": [ready]}}).status_code == 200
            beaten[0] = time.monotonic()

    def condition() -> tuple[str, str]:
        beat()
        conditions = site.service.api(f"/v1/machines/{node.name}")["conditions"]
        found = (each for each in conditions or () if each["type"] == "InService")
        return next(((one["reason"], one["message"]) for one in found), ("", ""))  # not judged yet

    wait_for(lambda: condition()[0] == "HealthGated", 180)
    assert node.say().status_code == 200
    node.becomes()
    wait_for(lambda: condition()[0] == "InService", 180)
    uid = node.get()["metadata"]["uid"]

    def events() -> list[tuple[str, str, str]]:
        items = site.admin("GET", EVENTS).json()["items"]
        found = [one for one in items if one["regarding"].get("uid") == uid and one.get("action") == "InService"]
        return [(one["type"], one["reason"], one["note"]) for one in found]

    wait_for(lambda: ("Normal", *condition()) in events(), 180)
    assert node.patch(admin, {"spec": {"unschedulable": True}}, "").status_code == 200
    wait_for(lambda: condition()[0] == "Cordoned", 180)
    wait_for(lambda: ("Warning", *condition()) in events(), 180)
    assert node.say("False").status_code == 200
    node.becomes(CLOSED)
    assert node.say().status_code == 200
    node.becomes()
    assert node.get()["spec"]["unschedulable"] is True, "who cordons it uncordons it"


def test_where_a_machine_stands_is_on_its_node_before_its_gate_opens(site: LiveSite, admin: requests.Session) -> None:
    """What a kubelet may not write the service does; and what the service wrote the node does not change."""
    node = Node(site, kind="top")
    stands = {
        "topology.kubernetes.io/zone": "hall-2",
        "example.com/site": "eu-1",
        "fabric.topograph.run/tier-0": "leaf-7",
        "fabric.topograph.run/tier-1": "spine-1",
        "accelerator.topograph.run/domain": "nvl-3",
        ROLE: "",
    }

    def labels() -> dict[str, str]:
        found = node.get()["metadata"]["labels"]
        return {key: value for key, value in found.items() if key not in ("beta.kubernetes.io/os", "kubernetes.io/os")}

    wait_for(lambda: labels() == {"pool": "a"} | MARK | stands, 180)
    assert node.taints() == [UNCHECKED]
    why = (
        "where a node stands it does not say itself: labels that the annotation netboot.dev/labels names are netboot's "
        "to write"
    )
    for key in ("topology.kubernetes.io/zone", "fabric.topograph.run/tier-1"):
        for value in ("elsewhere", None):
            for at in ("", "/status"):
                denied(node.patch(node.session, {"metadata": {"labels": {key: value}}}, at), why)
    forbidden = node.patch(node.session, {"metadata": {"labels": {ROLE: None}}}, "")
    assert (forbidden.status_code, "is not allowed to modify labels: " + ROLE in forbidden.text) == (403, True)
    assert node.patch(node.session, {"metadata": {"labels": {"pool": "b"}}}).status_code == 200
    moved = {"metadata": {"labels": {"topology.kubernetes.io/zone": "elsewhere"}}}
    assert node.patch(admin, moved, "").status_code == 200
    wait_for(lambda: labels() == {"pool": "b"} | MARK | stands, 180)


def test_a_certificate_of_the_boot_before_opens_nothing_and_a_renewed_one_does(site: LiveSite) -> None:
    node = Node(site)
    assert node.say().status_code == 200
    node.becomes()
    stolen = node.session
    node.boot()
    assert node.say(session=stolen).status_code == 200, "it says with which certificate it writes, and does"
    ordinary = Node(site)
    assert ordinary.say().status_code == 200
    ordinary.becomes()
    assert node.taints() == [UNCHECKED], "the gate has had its time"
    site.certificate(site.ask(node.session, serving(node.name, [node.name])))  # shows how long the signer lets live
    key = new_key()
    asked = site.ask(node.session, renewal(node.name, pem=pem(node.name, key)))
    renewed = site.as_node(site.certificate(asked), key)
    assert node.say(session=renewed).status_code == 200
    node.becomes()


def denied(answer: requests.Response, why: str) -> None:
    assert answer.status_code == 422, answer.text
    by = "ValidatingAdmissionPolicy 'netboot-gate' with binding 'netboot-gate' denied request: "
    assert answer.json()["message"].partition(by)[2] == why, answer.text


@pytest.fixture(scope="module")
def node(site: LiveSite) -> Node:
    """Whose gate is open."""
    one = Node(site)
    assert one.say().status_code == 200
    one.becomes()
    return one


@pytest.fixture(scope="module")
def another(site: LiveSite) -> Node:
    return Node(site)


@pytest.fixture(scope="module")
def admin(site: LiveSite) -> requests.Session:
    session = site._session()
    session.cert = (str(site.cluster.folder / "admin.crt"), str(site.cluster.folder / "admin.key"))
    return session


def detecting(site: LiveSite, admin: requests.Session) -> requests.Session:
    """As node-problem-detector, with the role that Kubernetes has for it: it patches the status of any node."""
    name, rbac = "system:node-problem-detector", "rbac.authorization.k8s.io"
    bound = {
        "metadata": {"name": "detector"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": name}],
    }
    made = site.admin("POST", f"/apis/{rbac}/v1/clusterrolebindings", bound)
    assert made.status_code == 201, made.text
    session = site._session()
    session.cert = admin.cert
    session.headers["Impersonate-User"] = name
    return session


def test_how_healthy_a_node_is_nobody_else_says(
    site: LiveSite, node: Node, another: Node, admin: requests.Session
) -> None:
    why = FOR_ITSELF.format(node.name)
    denied(node.patch(admin, said("False", node.credential)), why)
    for at in ("", "/status"):
        for body in (
            {"metadata": {"annotations": {"netboot.dev/health-credential": "X509SHA256=" + "0" * 64}}},
            {"metadata": {"annotations": {"netboot.dev/health-report": "sha256:1"}}},
            {"metadata": {"annotations": {"netboot.dev/health-checks": None}}},
        ):
            denied(node.patch(admin, body, at), why)
    detector = detecting(site, admin)
    wait_for(lambda: node.patch(detector, PLAIN).status_code == 200)
    denied(node.patch(detector, said("False", node.credential)), why)
    others = node.patch(another.session, said("True", node.credential))
    assert (others.status_code, "is not allowed to modify node" in others.text) == (403, True)


def test_a_node_names_the_certificate_that_it_writes_with(node: Node) -> None:
    for credential in ("X509SHA256=" + "0" * 64, "x"):
        denied(node.say("False", credential=credential), CREDENTIAL)
    bare = said("False", node.credential)
    del bare["metadata"]
    assert node.patch(node.session, bare).status_code == 200, "it is named still"
    node.becomes(CLOSED)
    denied(node.patch(node.session, {"metadata": {"annotations": {"netboot.dev/health-credential": None}}}), CREDENTIAL)
    assert node.say().status_code == 200
    node.becomes()


def test_what_is_ours_on_a_node_neither_it_nor_an_administrator_changes(node: Node, admin: requests.Session) -> None:
    held = {"key": "netboot.dev/held", "value": "me", "effect": "NoSchedule"}
    now = "2026-01-01T00:00:00Z"
    gate = {"type": "netboot.dev/Gate", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
    for session in (admin, node.session):
        for body, what, verb in (
            ({"metadata": {"annotations": {"netboot.dev/gate": "manual"}}}, "annotations", "write"),
            ({"metadata": {"labels": {"netboot.dev/driver": "x"}}}, "labels", "write"),
            ({"status": {"conditions": [gate]}}, "conditions", "write"),
        ):
            denied(node.patch(session, body), OURS.format(what, verb))
    denied(
        node.patch(admin, {"metadata": {"labels": {"netboot.dev/managed-by": None}}}), OURS.format("labels", "write")
    )
    denied(node.patch(admin, {"spec": {"taints": [held]}}, ""), OURS.format("taints", "change"))
    for session in (admin, node.session):
        assert node.patch(session, PLAIN).status_code == 200
    assert node.patch(admin, {"spec": {"taints": [FOREIGN]}}, "").status_code == 200
    assert node.patch(admin, {"spec": {"taints": None}}, "", MERGE).status_code == 200


def test_a_node_brings_nothing_of_ours_that_it_was_not_given(site: LiveSite) -> None:
    why = "a node registers with no taint, label or annotation under netboot.dev/ but those that netboot gives it"
    chassis = site.fresh()
    _, session = site.join(site.power_on(chassis))
    plain: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": chassis.name, "labels": MARK}}
    plain["spec"] = {"taints": [REGISTERED]}
    url = f"{site.cluster.url}{NODES}?dryRun=All"
    for change in (
        {"spec": {"taints": [REGISTERED, {"key": "netboot.dev/other", "effect": "NoSchedule"}]}},
        {"metadata": plain["metadata"] | {"labels": MARK | {"netboot.dev/other": "x"}}},
        {"metadata": plain["metadata"] | {"annotations": {"netboot.dev/gate": "manual"}}},
    ):
        denied(session.post(url, json=plain | change, timeout=60), why)
    healthy = said("True", "X509SHA256=" + "0" * 64)
    healthy["metadata"] |= plain["metadata"]
    denied(session.post(url, json=plain | healthy, timeout=60), CREDENTIAL)
    assert session.post(url, json=plain, timeout=60).status_code == 201


def test_break_glass_takes_a_gate_into_its_own_hands(site: LiveSite) -> None:
    """As docs/gate.md has it: the service lives, and knows less than the person does."""
    node = Node(site)
    assert node.say("False").status_code == 200
    glass = site._session()
    glass.cert = (str(site.cluster.folder / "break-glass.crt"), str(site.cluster.folder / "break-glass.key"))
    by_hand = {"metadata": {"annotations": {"netboot.dev/gate": "manual"}}}
    assert node.patch(glass, by_hand).status_code == 200
    taken = [one for one in node.get()["spec"]["taints"] if one["key"] != "netboot.dev/unchecked"]
    assert node.patch(glass, {"spec": {"taints": taken}}, "", MERGE).status_code == 200
    assert node.say("False").status_code == 200
    ordinary = Node(site)
    assert ordinary.say().status_code == 200
    ordinary.becomes()
    assert node.taints() == [], "the gate has had its time"
    assert node.patch(glass, {"metadata": {"annotations": {"netboot.dev/gate": None}}}).status_code == 200
    node.becomes(CLOSED)
    assert node.say().status_code == 200
    node.becomes()  # a Node that stays closed would use up the budget of later tests


@pytest.mark.parametrize(
    "grown",
    [
        lambda node: {"spec": {"taints": [{"key": f"example.com/{n}", "effect": "NoSchedule"} for n in range(17)]}},
        lambda node: {"metadata": {"annotations": {f"example.com/{n}": "x" for n in range(64)}}},
    ],
    ids=["taints", "annotations"],
)
def test_a_node_grows_only_so_far(node: Node, admin: requests.Session, grown: Callable[[Node], Any]) -> None:
    denied(
        node.patch(admin, grown(node), ""),
        "a Node of netboot's has at most 16 taints, 64 annotations and 64 conditions",
    )


def test_a_node_as_large_as_it_may_be_is_still_written_to(site: LiveSite, admin: requests.Session) -> None:
    """All that the policy goes through, at its longest: it must never be too dear to take a taint."""
    another = Node(site)  # one that is a minute old has four more conditions, by Kubernetes
    now = "2026-01-01T00:00:00Z"
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now, "status": "False"}
    conditions = [{"type": f"example.com/{n}", **times} for n in range(62)]  # with Healthy and Gate 64
    taints = [REGISTERED, *({"key": f"example.com/{n}", "effect": "NoSchedule"} for n in range(12))]
    labels = {f"example.com/{n}": "x" * 60 for n in range(400)}
    assert another.patch(admin, {"metadata": {"labels": labels}}, "").status_code == 200
    assert another.patch(admin, {"spec": {"taints": taints}}, "").status_code == 200
    answer = another.patch(another.session, {"status": {"conditions": conditions}})
    assert answer.status_code == 200, answer.text
    annotations = {f"example.com/{n}": "x" * 500 for n in range(58)}
    assert another.patch(admin, {"metadata": {"annotations": annotations}}, "").status_code == 200
    took = []
    for _ in range(10):
        started = time.perf_counter()
        assert another.say("Unknown").status_code == 200
        took.append(time.perf_counter() - started)
    print(f"a word of a Node that is as large as it may be: {median(took) * 1000:.1f} ms")
    assert median(took) < 1.0, "not the mean: others take of the processor for a moment, too"
    assert another.say().status_code == 200
    wait_for(lambda: UNCHECKED not in another.taints(), 180)


def test_nodes_of_others_are_left_alone(site: LiveSite, admin: requests.Session) -> None:
    plain = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "of-others"}}
    other = Admin(site.cluster)
    try:
        made = other("POST", NODES, plain | {"spec": {"taints": [REGISTERED]}})
        assert made.status_code == 201, made.text
        url = f"{site.cluster.url}{NODES}/of-others"
        body = {"metadata": {"annotations": {"netboot.dev/gate": "x"}}, "spec": {"taints": None}}
        answer = admin.patch(url, data=json.dumps(body), headers={"Content-Type": MERGE}, timeout=60)
        assert answer.status_code == 200, answer.text
    finally:
        other("DELETE", f"{NODES}/of-others")
        other.close()
