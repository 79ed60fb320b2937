"""Join's own code against a real kube-apiserver, with the issuer's account: what it hands out works, and only so."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from netboot.config_nodes import Cluster as ClusterConfig
from netboot.join.errors import ClusterUnavailableError, HeldError
from netboot.join.issued_tokens import sweep
from netboot.join.ports import MARK, ClusterAccess
from netboot.join.preconditions import Connected, refusals
from netboot.kube.clusters import reach
from tests.joining import Stage, boot_id, pinned
from tests.processes import wait_for
from tests.soft_tpm import Machine

pytestmark = pytest.mark.cluster
SECRETS = "/api/v1/namespaces/kube-system/secrets"
NODE = "/api/v1/nodes"


@pytest.fixture(scope="module")
def issuer(control_plane: Cluster, accounts: dict[str, Path]) -> Connected:
    """The cluster as the issuer's account sees it."""
    config = ClusterConfig(
        endpoints=(control_plane.url,), authority=control_plane.folder / "ca.crt", issuer=accounts["issuer"]
    )
    return reach("default", config)


@pytest.fixture
def cluster(issuer: Connected) -> ClusterAccess:
    return issuer[0]


@pytest.fixture
def stage(cluster: ClusterAccess) -> Stage:
    """A machine of its own for each test, at the real time."""
    return Stage(now_ms=time.time_ns() // 1_000_000, leases=cluster.leases, tokens=cluster.tokens, nodes=cluster.nodes)


def named(stage: Stage, name: str, **more: Any) -> Machine:
    """A machine of that name, declared."""
    machine = Machine(boot_id(name), **more)
    stage.machines = (pinned(machine, name),)
    return machine


def as_holder(cluster: Cluster, token: str, path: str = "/api") -> int:
    """What the apiserver says to who has this token."""
    headers = {"Authorization": f"Bearer {token}"}
    with requests.Session() as session:
        session.trust_env = False
        found = session.get(cluster.url + path, headers=headers, verify=str(cluster.folder / "ca.crt"), timeout=60)
    return found.status_code


def test_the_cluster_is_fit_as_it_is_shipped(issuer: Connected) -> None:
    findings = issuer[1]()
    assert not refusals(findings), findings


def test_the_token_authenticates_and_opens_nothing_but_certificate_requests(
    stage: Stage, control_plane: Cluster, as_admin: Admin
) -> None:
    said = stage.join(named(stage, "join-one"))
    wait_for(lambda: as_holder(control_plane, said["token"]) == 200)
    assert as_holder(control_plane, said["token"], SECRETS) == 403
    secret = as_admin("GET", f"{SECRETS}/bootstrap-token-{said['token'][:6]}").json()
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    lease = stage.leases.read("default", "join-one") if stage.leases else None
    assert lease is not None
    assert (lease.issued, lease.token_id, lease.reset_count) == (1, said["token"][:6], 5)


def test_the_node_of_the_boot_before_is_gone_before_the_token(
    stage: Stage, as_admin: Admin, cluster: ClusterAccess
) -> None:
    node: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "join-two", "labels": MARK}}
    node["spec"] = {"taints": [{"key": "netboot.dev/unchecked", "effect": "NoExecute"}]}
    assert as_admin("POST", NODE, node).status_code == 201
    order: list[str] = []

    class Watching:
        """The real tokens; looks whether the Node is there when one is made."""

        def create(self, manifest: Any) -> None:
            order.append(f"node {as_admin('GET', f'{NODE}/join-two').status_code}")
            cluster.tokens.create(manifest)

        def delete(self, token_id: str) -> None:
            cluster.tokens.delete(token_id)

    stage.tokens = Watching()
    machine = named(stage, "join-two")
    stage.join(machine)
    assert order == ["node 404"]
    assert as_admin("POST", NODE, node).status_code == 201
    stage.join(machine)  # the same boot asks again: its own Node stays
    assert as_admin("GET", f"{NODE}/join-two").status_code == 200
    as_admin("DELETE", f"{NODE}/join-two")


def test_a_replay_gets_another_token_and_the_first_is_deleted(stage: Stage, as_admin: Admin) -> None:
    machine = named(stage, "join-three")
    answer = stage.hello(machine)
    tokens = [stage.attest(machine, answer)["token"] for _ in range(2)]
    states = [as_admin("GET", f"{SECRETS}/bootstrap-token-{token[:6]}").status_code for token in tokens]
    assert states == [404, 200]


def test_a_thief_on_the_machine_is_held_off_and_a_reboot_is_not(stage: Stage) -> None:
    machine = named(stage, "join-four")
    stage.join(machine)
    with pytest.raises(HeldError, match="another key holds the credential of this boot of join-four"):
        stage.join(Machine(machine.boot))
    with pytest.raises(HeldError, match="counts fewer resets than it did"):
        stage.join(Machine(machine.boot, resets=0, restarts=0))
    assert stage.join(Machine(boot_id("join-four", 2), resets=6))["token"]


def test_replicas_that_race_for_one_boot_have_one_winner(stage: Stage, as_admin: Admin) -> None:
    named(stage, "join-five")
    rivals = [Machine(boot_id("join-five")) for _ in range(6)]
    won, lost = [], []

    def join(machine: Machine) -> None:
        try:
            won.append(stage.join(machine))
        except (HeldError, ClusterUnavailableError) as error:
            lost.append(error)

    threads = [threading.Thread(target=join, args=(one,)) for one in rivals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1, lost
    listed = as_admin("GET", SECRETS).json()["items"]
    ours = [one for one in listed if "am9pbi1maXZl" in (one.get("data") or {}).get("description", "")]
    assert len(ours) <= 1
    assert as_admin("GET", f"{SECRETS}/bootstrap-token-{won[0]['token'][:6]}").status_code == 200


def test_expired_tokens_are_swept(stage: Stage, as_admin: Admin, cluster: ClusterAccess) -> None:
    said = stage.join(named(stage, "join-six"))
    path = f"{SECRETS}/bootstrap-token-{said['token'][:6]}"
    assert sweep(cluster, stage.now_ms) == 0
    assert as_admin("GET", path).status_code == 200
    assert sweep(cluster, stage.now_ms + 400_000) >= 1
    assert as_admin("GET", path).status_code == 404
    assert sweep(cluster, stage.now_ms + 400_000) == 0


def test_an_apiserver_that_does_not_answer_is_said_so(stage: Stage, accounts: dict[str, Path], tmp_path: Path) -> None:
    text = accounts["issuer"].read_text()
    port = text.partition('"server": "https://127.0.0.1:')[2].partition('"')[0]
    broken = tmp_path / "broken.kubeconfig"
    broken.write_text(text.replace(f"127.0.0.1:{port}", "127.0.0.1:9"))
    broken.chmod(0o600)
    config = ClusterConfig(endpoints=("https://192.0.2.1:6443",), authority=tmp_path / "ca.crt", issuer=broken)
    with pytest.raises(ClusterUnavailableError, match=r"ca.crt: No such file or directory"):
        reach("default", config)
    (tmp_path / "ca.crt").write_text("x")
    away, _ = reach("default", config)
    stage.leases = away.leases
    with pytest.raises(ClusterUnavailableError):
        stage.join(named(stage, "join-seven"))


def test_nothing_secret_is_in_the_audit_log(stage: Stage, control_plane: Cluster) -> None:
    said = stage.join(named(stage, "join-eight"))
    secret = said["token"].partition(".")[2]
    assert secret not in (control_plane.folder / "audit.log").read_text()
