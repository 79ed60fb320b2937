"""What breaks at the wrong moment: the apiserver, the approver, keys, clocks; and strangers who shout."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.kube import cluster as lab
from netboot.stores.sealing import added, new_key, promoted, read_keys, retired, write_keys
from tests.cluster.bad.whole import LEASES, NODES, SERVE, Whole, failed
from tests.kubelets import client, pem, renewal
from tests.processes import wait_for
from tests.sockets.join_site import JoinSite
from tests.soft_tpm import new_key as agent_key

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def second(whole: Whole) -> JoinSite:
    """A second replica."""
    return whole.replica(1)


@pytest.fixture
def replica(second: JoinSite) -> Iterator[str]:
    """Its name; its clock is right again afterwards."""
    yield "join-1"
    second.say("clock-1", "0")


def test_hello_to_one_replica_and_attest_to_the_other(whole: Whole, replica: str) -> None:
    for one, other in ((SERVE, replica), (replica, SERVE)):
        kit = whole.fresh()
        machine = whole.power_on(kit)
        said = whole.attest(machine, whole.hello(machine, one).body, other)
        assert said.status == 200, said
        whole.certificate(whole.ask(whole.bearer(said.body["token"]), client(kit.name, key=machine.key)))


@pytest.mark.parametrize("ahead", [25_000, -25_000])
def test_a_replica_s_clock_is_25_s_off(whole: Whole, second: JoinSite, replica: str, ahead: int) -> None:
    second.say("clock-1", str(ahead))
    for one, other in ((SERVE, replica), (replica, SERVE)):
        kit = whole.fresh()
        machine = whole.power_on(kit)
        said = whole.attest(machine, whole.hello(machine, one).body, other)
        assert said.status == 200, said
        whole.certificate(whole.ask(whole.bearer(said.body["token"]), client(kit.name, key=machine.key)))


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (600_000, "expired 480 s ago by this clock: start again with hello"),
        (-600_000, "s ahead of this one: check NTP on both replicas"),
    ],
)
def test_a_replica_s_clock_is_10_minutes_off(
    whole: Whole, second: JoinSite, replica: str, ahead: int, words: str
) -> None:
    machine = whole.power_on(whole.fresh())
    before = whole.tokens()
    hello = whole.hello(machine).body
    second.say("clock-1", str(ahead))
    said = whole.attest(machine, hello, replica)
    assert words in failed(said, 410, "stale")
    assert whole.tokens() == before
    assert whole.attest(machine, hello).status == 200


def test_keys_are_rotated_in_the_middle(whole: Whole, replica: str) -> None:
    join = whole.service.config.join
    assert join is not None
    kit, path = whole.fresh(), join.sealing_keys
    first = read_keys(path)
    for step in (lambda keys: added(keys, new_key()), promoted, retired):
        machine = whole.power_on(kit)
        hello = whole.hello(machine).body
        write_keys(path, step(read_keys(path)))
        said = whole.attest(machine, hello, replica)
        assert said.status == 200, said
    assert read_keys(path).keys[0].id != first.keys[0].id
    machine = whole.power_on(kit)
    hello = whole.hello(machine).body
    own = read_keys(path)
    write_keys(path, first)  # a replica that was forgotten
    assert "sealed under a key that is not in use here" in failed(whole.attest(machine, hello, replica), 410, "stale")
    write_keys(path, own)


def test_a_node_s_clock_in_1970(whole: Whole, tmp_path: Path) -> None:
    machine = whole.power_on(whole.fresh())
    (tmp_path / "usr").mkdir()
    set_to, time = list[float](), [3.0]

    def set_clock(seconds: float) -> None:
        set_to.append(seconds)
        time[0] = seconds

    told = whole.agent(tmp_path, machine, now=lambda: time[0], set_clock=set_clock)
    assert told.lines[0].startswith("the clock said 1970-01-01 00:00:03, now 20")
    assert told.lines[-1].startswith("joined as k-")
    assert set_to == [(tmp_path / "usr").stat().st_mtime], "before TLS; join's own is not a minute from it"


def test_an_apiserver_that_is_down_is_waited_for(whole: Whole, tmp_path: Path) -> None:
    waiting, direct = (whole.power_on(whole.fresh()) for _ in range(2))
    hello = whole.hello(direct).body
    told: list[Any] = []
    agent = threading.Thread(target=lambda: told.append(whole.agent(tmp_path, waiting)))
    with apiserver_down(whole):
        said = whole.attest(direct, hello)
        assert "the apiserver" in failed(said, 503, "cluster-unavailable")
        assert int(said.headers["Retry-After"]) > 0
        agent.start()
        wait_for(lambda: whole.service.api(f"/v1/boots/{waiting.boot}").get("failures"), 60)
    agent.join(120)
    assert told, "the agent has not joined"
    waits = [line for line in told[0].lines if "answered 503: the apiserver" in line and "; trying again in " in line]
    assert waits, told[0].lines
    assert told[0].lines[-1].startswith("joined as k-")
    assert whole.attest(direct, hello).status == 200


@contextmanager
def apiserver_down(whole: Whole) -> Iterator[None]:
    """Killed, and started again after the block: asked to end it would wait a minute for those who watch."""
    apiserver = whole.cluster.processes["kube-apiserver"]
    apiserver.kill()
    apiserver.wait()
    try:
        yield
    finally:
        lab._start(whole.cluster, "kube-apiserver", list(apiserver.args))  # type: ignore[arg-type]
        wait_for(lambda: whole.admin("GET", "/readyz").status_code == 200, 60)


def test_the_approver_is_killed_between_approve_and_delete(whole: Whole) -> None:
    """It deletes a token once its certificate is there: while the signer is held still it has only approved."""
    kit = whole.fresh()
    machine = whole.power_on(kit)
    said = whole.prove(machine)
    signer = whole.cluster.processes["kube-controller-manager"]
    signer.send_signal(signal.SIGSTOP)
    try:
        name = whole.ask(whole.bearer(said["token"]), client(kit.name, key=machine.key))
        assert whole.decision(name)[0] == "Approved"
        before = approver(whole)["pid"]
        os.kill(before, signal.SIGKILL)
        wait_for(lambda: approver(whole)["pid"] != before and approver(whole)["ready"], 60)
        assert whole.has_token(said["token"])
    finally:
        signer.send_signal(signal.SIGCONT)
    whole.certificate(name)
    wait_for(lambda: not whole.has_token(said["token"]), 60)
    wait_for(lambda: "CSRApproved" in whole.phases(machine.boot), 60)


def approver(whole: Whole) -> dict[str, Any]:
    found: dict[str, Any] = whole.service.readyz()["details"]["processes"]["processes"]["approver-default"]
    return found


def test_a_hello_with_a_megabyte_of_garbage(whole: Whole) -> None:
    for path in ("/v1/join/hello", "/v1/join/attest"):
        said = whole.net.ask(SERVE, "POST", path, os.urandom(2**20))
        assert said.status == 413
    assert whole.hello(whole.power_on(whole.fresh())).status == 200


def test_a_healthy_machine_s_script_fetched_by_a_stranger_with_false_events(whole: Whole) -> None:
    kit = whole.fresh()
    machine = whole.power_on(kit)
    assert whole.service.post(machine.boot, kit.mac, "InitrdStarted", uptime_ms=2_000) == 204
    _, session = whole.join(machine)
    become_ready(whole, session, kit.name)

    def current() -> Any:
        found = whole.service.api(f"/v1/machines/{kit.name}")["current"]
        return found if found and found["state"] == "Ready" else None

    before = wait_for(current, 60)
    lease, uid = leases(whole), whole.admin("GET", f"{NODES}/{kit.name}").json()["metadata"]["uid"]
    tale = whole.service.boot(kit.mac)
    for phase in ("InitrdStarted", "ImageFetched", "ImageVerified", "Switched", "Booted", "Joining", "Failed"):
        assert whole.service.post(tale, kit.mac, phase, uptime_ms=1_000, detail="a tale") == 204
    assert whole.service.post(machine.boot, kit.mac, "Failed", detail="a tale of the very boot") == 204
    for phase in ("Attested", "TokenIssued", "CSRApproved", "Ready"):
        assert whole.service.post(tale, kit.mac, phase, uptime_ms=1_000) == 400, "nobody's to tell"
    wait_for(lambda: whole.service.api(f"/v1/boots/{tale}").get("failures"))
    wait_for(lambda: whole.service.api(f"/v1/boots/{machine.boot}").get("failures"))
    stranger = kit.as_it_is(tale, ek=agent_key())
    assert failed(whole.hello(stranger), 403, "refused").startswith(f"this machine claims to be {kit.name}, whose TPM")

    after = wait_for(current)
    assert {**after, "failures": [], "last_ms": 0} == {**before, "failures": [], "last_ms": 0}
    assert (after["boot"], after["standing"]) == (machine.boot, "proven")
    assert leases(whole) == lease
    node = whole.admin("GET", f"{NODES}/{kit.name}").json()
    assert node["metadata"]["uid"] == uid
    kind = whole.decision(whole.ask(session, renewal(kit.name, pem=pem(kit.name, agent_key()))))
    assert kind == ("Approved", "NetbootInService", f"machine {kit.name}, proven by tpm in boot {machine.boot}")


def become_ready(whole: Whole, session: Any, name: str) -> None:
    """As a kubelet does, with its certificate."""
    taint = {"key": "netboot.dev/unchecked", "effect": "NoSchedule"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": [taint]}}
    made = session.post(f"{whole.cluster.url}{NODES}", json=node, timeout=30)
    assert made.status_code == 201, made.text
    one = {"type": "Ready", "status": "True", "lastTransitionTime": made.json()["metadata"]["creationTimestamp"]}
    patch = {"status": {"conditions": [one | {"lastHeartbeatTime": one["lastTransitionTime"]}]}}
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    path = f"{whole.cluster.url}{NODES}/{name}/status"
    said = session.patch(path, json=patch, headers=headers, timeout=30)
    assert said.status_code == 200, said.text


def leases(whole: Whole) -> list[tuple[str, Any]]:
    items = whole.admin("GET", LEASES).json()["items"]
    return [(one["metadata"]["resourceVersion"], one["spec"]) for one in items]
