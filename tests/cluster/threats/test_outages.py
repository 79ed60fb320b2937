"""What breaks at the wrong moment: the apiserver, the approver, keys, clocks; and strangers who shout."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.kube import cluster as lab
from netboot.join.ports import MARK
from netboot.kube.admission import NAME
from netboot.stores.sealing import added, new_key, promoted, read_keys, retired, write_keys
from tests.cluster.threats.live_site import LEASES, NODES, SERVE, LiveSite, failed
from tests.kubelets import client, pem, renewal, serving
from tests.processes import stopped, wait_for
from tests.sockets.join_site import JoinSite
from tests.soft_tpm import new_key as agent_key

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def second(site: LiveSite) -> JoinSite:
    """A second replica."""
    return site.replica(1)


@pytest.fixture
def replica(second: JoinSite) -> Iterator[str]:
    """Its name; its clock is right again afterwards."""
    yield "join-1"
    second.say("clock-1", "0")


def test_hello_to_one_replica_and_attest_to_the_other(site: LiveSite, replica: str) -> None:
    for one, other in ((SERVE, replica), (replica, SERVE)):
        chassis = site.fresh()
        machine = site.power_on(chassis)
        said = site.attest(machine, site.hello(machine, one).body, other)
        assert said.status == 200, said
        site.certificate(site.ask(site.bearer(said.body["token"]), client(chassis.name, key=machine.key)))


@pytest.mark.parametrize("ahead", [25_000, -25_000])
def test_a_replica_s_clock_is_25_s_off(site: LiveSite, second: JoinSite, replica: str, ahead: int) -> None:
    second.say("clock-1", str(ahead))
    for one, other in ((SERVE, replica), (replica, SERVE)):
        chassis = site.fresh()
        machine = site.power_on(chassis)
        said = site.attest(machine, site.hello(machine, one).body, other)
        assert said.status == 200, said
        site.certificate(site.ask(site.bearer(said.body["token"]), client(chassis.name, key=machine.key)))


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (600_000, "expired {} s ago by this clock: start again with hello"),
        (-600_000, "s ahead of this one: check NTP on both replicas"),
    ],
)
def test_a_replica_s_clock_is_10_minutes_off(
    site: LiveSite, second: JoinSite, replica: str, ahead: int, words: str
) -> None:
    machine = site.power_on(site.fresh())
    before, began = site.tokens(), time.monotonic()
    hello = site.hello(machine).body
    second.say("clock-1", str(ahead))
    said = site.attest(machine, hello, replica)
    # By the test's own time it says a second more, or some.
    late = range(int(time.monotonic() - began) + 2)
    assert any(words.format(480 + seconds) in failed(said, 410, "stale") for seconds in late), said
    assert site.tokens() <= before  # older ones may expire meanwhile
    assert site.attest(machine, hello).status == 200


def test_keys_are_rotated_in_the_middle(site: LiveSite, replica: str) -> None:
    join = site.service.config.join
    assert join is not None
    chassis, path = site.fresh(), join.sealing_keys
    first = read_keys(path)
    for step in (lambda keys: added(keys, new_key()), promoted, retired):
        machine = site.power_on(chassis)
        hello = site.hello(machine).body
        write_keys(path, step(read_keys(path)))
        said = site.attest(machine, hello, replica)
        assert said.status == 200, said
    assert read_keys(path).keys[0].id != first.keys[0].id
    machine = site.power_on(chassis)
    hello = site.hello(machine).body
    own = read_keys(path)
    write_keys(path, first)  # a replica that was forgotten
    try:
        said = site.attest(machine, hello, replica)
    finally:
        write_keys(path, own)
    assert "sealed under a key that is not in use here" in failed(said, 410, "stale")


def test_a_node_s_clock_in_1970(site: LiveSite, tmp_path: Path) -> None:
    machine = site.power_on(site.fresh())
    (tmp_path / "usr").mkdir()
    set_to, time = list[float](), [3.0]

    def set_clock(seconds: float) -> None:
        set_to.append(seconds)
        time[0] = seconds

    told = site.agent(tmp_path, machine, now=lambda: time[0], set_clock=set_clock)
    assert told.lines[0].startswith("the clock said 1970-01-01 00:00:03, now 20")
    assert told.lines[-1].startswith("joined as k-")
    assert set_to == [(tmp_path / "usr").stat().st_mtime], "before TLS; join's own is not a minute from it"


def test_an_apiserver_that_is_down_is_waited_for(site: LiveSite, tmp_path: Path) -> None:
    waiting, direct = (site.power_on(site.fresh()) for _ in range(2))
    told: list[Any] = []
    agent = threading.Thread(target=lambda: told.append(site.agent(tmp_path, waiting)))
    with apiserver_down(site):
        agent.start()
        greeted = site.hello(direct)  # first: two minutes after its last word the cluster is not believed any more
        assert greeted.status == 200, greeted
        said = site.attest(direct, greeted.body)
        assert "the apiserver" in failed(said, 503, "cluster-unavailable")
        assert int(said.headers["Retry-After"]) > 0
        wait_for(lambda: site.service.api(f"/v1/boots/{waiting.boot}").get("failures"), 180)
    # From the beginning: its hello is good for two minutes, and an apiserver may take one to start.
    wait_for(lambda: site.proven(direct), 180)
    agent.join(180)
    assert told, "the agent has not joined"
    waits = [line for line in told[0].lines if "answered 503: the apiserver" in line and "; trying again in " in line]
    assert waits, told[0].lines
    assert told[0].lines[-1].startswith("joined as k-")


@contextmanager
def apiserver_down(site: LiveSite) -> Iterator[None]:
    """Killed, and started again after the block: asked to end it would wait a minute for those who watch."""
    apiserver = site.cluster.processes["kube-apiserver"]
    apiserver.kill()
    apiserver.wait()
    try:
        yield
    finally:
        lab._start(site.cluster, "kube-apiserver", list(apiserver.args))  # type: ignore[arg-type]
        wait_for(lambda: site.admin("GET", "/readyz").status_code == 200, lab.START_SECONDS)


def test_the_approver_is_killed_between_approve_and_delete(site: LiveSite) -> None:
    """It deletes a token once its certificate is there: while the signer is held still it has only approved."""
    chassis = site.fresh()
    machine = site.power_on(chassis)
    said = site.prove(machine)
    with stopped(site.cluster.processes["kube-controller-manager"].pid):
        name = site.ask(site.bearer(said["token"]), client(chassis.name, key=machine.key))
        assert site.decision(name)[0] == "Approved"
        before = approver(site)["pid"]
        os.kill(before, signal.SIGKILL)
        wait_for(lambda: approver(site)["pid"] != before and approver(site)["ready"], 180)
        assert site.has_token(said["token"])
    site.certificate(name)
    wait_for(lambda: not site.has_token(said["token"]), 180)
    wait_for(lambda: "CSRApproved" in site.phases(machine.boot), 180)


def approver(site: LiveSite) -> dict[str, Any]:
    found: dict[str, Any] = site.service.readyz()["details"]["processes"]["processes"]["approver-default"]
    return found


def test_a_hello_with_a_megabyte_of_garbage(site: LiveSite) -> None:
    for path in ("/v1/join/hello", "/v1/join/attest"):
        said = site.net.ask(SERVE, "POST", path, os.urandom(2**20))
        assert said.status == 413
    assert site.hello(site.power_on(site.fresh())).status == 200


def test_a_healthy_machine_s_script_fetched_by_a_stranger_with_false_events(site: LiveSite) -> None:
    chassis = site.fresh()
    machine = site.power_on(chassis)
    assert site.service.post(machine.boot, chassis.mac, "InitrdStarted", uptime_ms=2_000) == 204
    _, session = site.join(machine)
    become_ready(site, session, chassis.name)

    whole = {"ScriptServed", "InitrdStarted", "Attested", "TokenIssued", "CSRApproved", "NodeRegistered", "Ready"}

    def current() -> Any:
        """The trace, where all of it is shown: it comes from several journals."""
        found = site.service.api(f"/v1/machines/{chassis.name}")["current"]
        known = {one["phase"] for one in found["reached"]} if found else set()
        return found if known >= whole and found["certificates"] else None

    before = wait_for(current, 180)
    lease, uid = leases(site, chassis.name), site.admin("GET", f"{NODES}/{chassis.name}").json()["metadata"]["uid"]
    claimed = site.service.boot(chassis.mac)
    for phase in ("InitrdStarted", "ImageFetched", "ImageVerified", "Switched", "Booted", "Joining", "Failed"):
        assert site.service.post(claimed, chassis.mac, phase, uptime_ms=1_000, detail="a false report") == 204
    assert site.service.post(machine.boot, chassis.mac, "Failed", detail="a false report of the very boot") == 204
    for phase in ("Attested", "TokenIssued", "CSRApproved", "Ready"):
        assert site.service.post(claimed, chassis.mac, phase, uptime_ms=1_000) == 400, "nobody may report it"
    wait_for(lambda: site.service.api(f"/v1/boots/{claimed}").get("failures"))
    wait_for(lambda: site.service.api(f"/v1/boots/{machine.boot}").get("failures"))
    stranger = chassis.as_it_is(claimed, ek=agent_key())
    assert failed(site.hello(stranger), 403, "refused").startswith(
        f"this machine claims to be {chassis.name}, whose TPM"
    )

    after = wait_for(current)
    assert {**after, "failures": [], "last_at": ""} == {**before, "failures": [], "last_at": ""}
    assert (after["boot"], after["standing"]) == (machine.boot, "proven")
    assert leases(site, chassis.name) == lease
    node = site.admin("GET", f"{NODES}/{chassis.name}").json()
    assert node["metadata"]["uid"] == uid
    site.certificate(site.ask(session, serving(chassis.name, [chassis.name])))
    kind = site.decision(site.ask(session, renewal(chassis.name, pem=pem(chassis.name, agent_key()))))
    assert kind == ("Approved", "NetbootInService", f"machine {chassis.name}, proven by tpm in boot {machine.boot}")


def become_ready(site: LiveSite, session: Any, name: str) -> None:
    """As a kubelet does, with its certificate."""
    taint = {"key": "netboot.dev/unchecked", "effect": "NoExecute"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": MARK}, "spec": {"taints": [taint]}}
    made = session.post(f"{site.cluster.url}{NODES}", json=node, timeout=60)
    assert made.status_code == 201, made.text
    one = {"type": "Ready", "status": "True", "lastTransitionTime": made.json()["metadata"]["creationTimestamp"]}
    patch = {"status": {"conditions": [one | {"lastHeartbeatTime": one["lastTransitionTime"]}]}}
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    path = f"{site.cluster.url}{NODES}/{name}/status"
    said = session.patch(path, json=patch, headers=headers, timeout=60)
    assert said.status_code == 200, said.text


def leases(site: LiveSite, machine: str) -> list[tuple[Any, ...]]:
    """Of machines, with the version of this one's: of others join writes each minute which tokens have expired. The
    one that the self-check writes is none's."""
    found = []
    for one in site.admin("GET", LEASES).json()["items"]:
        metadata = one["metadata"]
        if metadata["name"] != NAME:
            said = {key: value for key, value in metadata["annotations"].items() if "/token-" not in key}
            version = metadata["resourceVersion"] if said["netboot.dev/machine"] == machine else ""
            found.append((metadata["uid"], version, one["spec"], said))
    return found
