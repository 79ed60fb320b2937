"""Several approvers of which one leads, against a real control plane: each is a process, with its own disk.

In a module of its own, for here no other approver may run beside them.
"""

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.kube import cluster as lab
from lab.kube.accounts import Admin, apply_manifests, kubeconfigs
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from netboot.config_outside import InKubernetes
from netboot.config_replicas import Replicas
from netboot.join.certificates import BootCertificates
from netboot.join.errors import ConflictError, ElectionRefusedError
from netboot.join.node_said import GateSaid
from netboot.kube.connection import Connection, connect
from netboot.kube.elections import KubeElection
from netboot.kube.manifests import manifests
from netboot.lifecycle.election import Leases
from tests.cluster.conftest import CACHE
from tests.cluster.joining import CSRS, SECONDS, Site
from tests.elections import CASES, Ground
from tests.kube_world import RealWorld
from tests.kubelets import client
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
LEASES = "/apis/coordination.k8s.io/v1/namespaces/netboot-leaders/leases"
LEASE = f"{LEASES}/approver"
SOON = Replicas(lease_seconds=5, renew_seconds=3, retry_seconds=0.5)
LATE = Replicas(lease_seconds=300, renew_seconds=40, retry_seconds=0.5)
"""Whoever takes over with these while a test waits has not waited for the Lease to end. A renewal that is under way is
answered, or given up, long before the test's approvers would keep the Lease (`let-go=`)."""


def remade(admin: Admin) -> None:
    """As the manifests make it."""
    admin("DELETE", LEASE)
    for document in manifests():
        if document["kind"] == "Lease":
            admin.apply(document)


class RealGround:
    """The approver's Lease as its account has it; the administrator beside."""

    def __init__(self, connection: Connection, admin: Admin) -> None:
        self.leases: Leases = KubeElection(connection, "netboot-leaders", "approver")
        self._admin = admin

    def wipe(self) -> None:
        self._put(spec={}, annotations={})

    def remake(self) -> None:
        remade(self._admin)

    def touch(self) -> None:
        self._put(labels={"touched": str(time.monotonic_ns())})

    def remove(self) -> None:
        assert self._admin("DELETE", LEASE).status_code == 200

    def _put(self, spec: Any = None, **metadata: Any) -> None:
        found = self._admin("GET", LEASE).json()
        found["metadata"] |= metadata
        found["spec"] = found["spec"] if spec is None else spec
        assert self._admin("PUT", LEASE, found).status_code == 200


@pytest.fixture
def fresh(accounts: dict[str, Path], as_admin: Admin) -> Iterator[dict[str, Path]]:
    """The Lease as it was applied; accounts."""
    remade(as_admin)
    yield accounts
    remade(as_admin)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_real(
    case: Callable[[Ground], None], fresh: dict[str, Path], connections: dict[str, Connection], as_admin: Admin
) -> None:
    assert fresh
    case(RealGround(connections["approver"], as_admin))


def test_each_account_has_its_own_lease_and_no_other(fresh: dict[str, Path], as_admin: Admin) -> None:
    """To write; none makes one, or deletes one, and who hands out tokens has none."""
    with ExitStack() as stack:
        for role in ("issuer", "approver", "nodes"):
            connection = stack.enter_context(closing(connect(fresh[role])))
            for name in ("approver", "nodes"):
                election = KubeElection(connection, "netboot-leaders", name)
                if role == name:
                    election.write(election.read()._replace(holder="a_1", seconds=15))
                    continue
                with pytest.raises(ElectionRefusedError) as caught:
                    election.read()
                assert str(caught.value) == (
                    f'the account of {fresh[role]} lacks a right: leases.coordination.k8s.io "{name}" is forbidden: '
                    f'User "system:serviceaccount:netboot:netboot-{role}" cannot get resource "leases" in API group '
                    f'"coordination.k8s.io" in the namespace "netboot-leaders"; the rights are in deploy/kubernetes: '
                    "`netboot cluster manifests | kubectl apply -f -`"
                )
            user = f"system:serviceaccount:netboot:netboot-{role}"
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "mine"}}
            assert as_admin("POST", LEASES, body, user=user).status_code == 403
            assert as_admin("DELETE", LEASE, user=user).status_code == 403


def test_what_is_applied_again_leaves_the_leader_in_peace(
    fresh: dict[str, Path], connections: dict[str, Connection], as_admin: Admin
) -> None:
    assert fresh
    election = KubeElection(connections["approver"], "netboot-leaders", "approver")
    lease = election.write(election.read()._replace(holder="a_1", transitions=3, seconds=15))
    for document in manifests():
        if document["kind"] == "Lease":
            as_admin.apply(document)
    assert election.read()._replace(version="") == lease._replace(version="")


def test_what_an_old_leader_read_is_too_old_to_write_by(world: RealWorld) -> None:
    """Each act is of the version that was looked at: whatever the next leader has done since makes it a conflict."""
    record = BootCertificates(cluster="default", machine="late", boot="b", holder="h", generation=0)
    world.certificates.write(record)
    with pytest.raises(ConflictError):
        world.certificates.write(record)  # it saw none
    old = world.certificates.read("default", "late")
    assert old is not None
    world.certificates.write(old.model_copy(update={"boot": "c"}))
    with pytest.raises(ConflictError):
        world.certificates.write(old)
    world.make_node("late")
    node, drained = world.nodes.node("late"), world.drains.node("late")
    assert node is not None
    assert drained is not None
    world.make_node("late", ready=True)
    for act in (
        lambda: world.collector.taint(node, []),
        lambda: world.collector.tell_gate(node, GateSaid("True", "Open", ""), 1_790_000_000_000),
        lambda: world.drains.change(drained, [], {}),
    ):
        with pytest.raises(ConflictError) as caught:
            act()
        assert str(caught.value) == "the Node late was changed by somebody else since"


class Several:
    """Replicas, each with a disk of its own; `site` asks for what they decide."""

    def __init__(self, control_plane: Cluster, accounts: dict[str, Path], folder: Path, times: Replicas) -> None:
        self.sites = {}
        for name in ("alpha", "beta"):
            (folder / name).mkdir()
            site = Site(control_plane, accounts, folder / name)
            named = times.model_copy(update={"name": name})
            given = {"replicas": named, "inventory_kubernetes": InKubernetes(holds=True)}
            site.config = site.config.model_copy(update=given)
            self.sites[name] = site
        self.site = self.sites["alpha"]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = ExitStack()
        self._asked = 0

    def start(self, name: str) -> None:
        self.processes[name] = self._stack.enter_context(self.sites[name].approver("let-go=60"))

    def leader(self) -> str:
        """Who leads, by the Lease; "": nobody."""
        spec = self.site.admin("GET", LEASE).json().get("spec") or {}
        return str(spec.get("holderIdentity") or "").partition("_")[0]

    def epoch(self) -> int:
        return int((self.site.admin("GET", LEASE).json().get("spec") or {}).get("leaseTransitions") or 0)

    def elected(self, *names: str) -> str:
        """One of these leads, and knows it; which."""
        return wait_for(lambda: next((name for name in names if self.leads(name)), ""), SECONDS)

    def leads(self, name: str) -> bool:
        leader = self.sites[name].status().leader
        return self.leader() == name and leader is not None and leader.leads and leader.epoch == self.epoch()

    def says(self, name: str, words: str) -> bool:
        return words in self.sites[name].log

    def ask(self, machine: str) -> str:
        """A machine asks for its first certificate; the name of the request."""
        self._asked += 1
        return self.site.ask(self.site.issue(machine), client(machine), f"leaders-{machine}-{self._asked}")

    def approvals(self) -> Counter[str]:
        """By the name of the request, as all replicas have logged them."""
        lines = [line for site in self.sites.values() for line in site.log.splitlines() if "approved: machine" in line]
        return Counter(word for line in lines for word in line.split() if word.startswith("request=leaders-"))

    def close(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
        self._stack.close()
        for site in self.sites.values():
            site.close()


@pytest.fixture
def several(
    control_plane: Cluster, fresh: dict[str, Path], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Several]:
    made = Several(control_plane, fresh, tmp_path, getattr(request, "param", SOON))
    yield made
    made.close()


def follower(leader: str) -> str:
    return "beta" if leader == "alpha" else "alpha"


def test_a_leader_that_is_killed_is_replaced_and_no_request_is_lost(several: Several) -> None:
    for name in ("alpha", "beta"):
        several.start(name)
    leader = several.elected("alpha", "beta")
    other = follower(leader)
    wait_for(lambda: several.sites[other].status().ok, SECONDS)  # who follows is in order
    names = [several.ask(f"n-{number:02}") for number in range(1, 5)]
    assert several.site.decision(names[0])[0] == "Approved"
    leader = several.elected("alpha", "beta")  # a machine that stands still for seconds moves it
    other, before = follower(leader), several.epoch()
    several.processes[leader].kill()
    names += [several.ask(f"n-{number:02}") for number in range(5, 9)]
    assert several.elected(other) == other
    for name in names:
        assert [(one[0], one[1]) for one in several.site.conditions(name) or [several.site.decision(name)]] == [
            ("Approved", "NetbootAttested")
        ]
    wait_for(lambda: several.site.admin("GET", CSRS).json()["items"], SECONDS)
    assert max(several.approvals().values()) == 1
    assert several.epoch() > before


def test_a_leader_that_was_frozen_does_not_act_when_it_goes_on(several: Several) -> None:
    for name in ("alpha", "beta"):
        several.start(name)
    leader = several.elected("alpha", "beta")
    other = follower(leader)
    several.processes[leader].send_signal(signal.SIGSTOP)
    assert several.elected(other) == other
    names = [several.ask(f"n-{number:02}") for number in range(10, 13)]
    for name in names:
        assert several.site.decision(name)[0] == "Approved"
    several.processes[leader].send_signal(signal.SIGCONT)
    wait_for(partial(several.says, leader, "this replica leads approver-default no longer: "), SECONDS)
    assert several.site.decision(several.ask("n-13"))[0] == "Approved"  # by whoever leads by then
    assert max(several.approvals().values()) == 1
    approved = [line for line in several.sites[leader].log.splitlines() if "approved: machine" in line]
    assert not any(f"request={name}" in line for line in approved for name in names)
    several.elected("alpha", "beta")
    assert several.processes[leader].poll() is None
    wait_for(lambda: several.sites[leader].status().ok, SECONDS)


@pytest.mark.parametrize("several", [LATE], indirect=True)
def test_a_leader_that_is_told_to_stop_hands_over(several: Several, as_admin: Admin) -> None:
    """Long before its Lease would end."""
    found = as_admin("GET", LEASE).json()
    found["metadata"].setdefault("annotations", {})["netboot.dev/released-by"] = "somebody_before"
    assert as_admin("PUT", LEASE, found).status_code == 200
    several.start("alpha")
    assert several.elected("alpha") == "alpha"
    several.start("beta")
    name = several.ask("n-20")
    assert several.site.decision(name)[0] == "Approved"
    several.processes["alpha"].terminate()
    assert several.elected("beta") == "beta"
    assert several.site.decision(several.ask("n-21"))[0] == "Approved"
    wait_for(lambda: several.says("alpha", "this replica lets go of approver-default"))
    assert several.epoch() == 2


def test_an_api_server_that_is_restarted_has_one_leader_again(tmp_path: Path) -> None:
    with cluster(find(CACHE), tmp_path / "cluster") as own:
        apply_manifests(own)
        (tmp_path / "site").mkdir()
        several = Several(own, kubeconfigs(own, tmp_path / "kubeconfigs"), tmp_path / "site", SOON)
        try:
            for name in ("alpha", "beta"):
                several.start(name)
            leader = several.elected("alpha", "beta")
            assert several.site.decision(several.ask("n-01"))[0] == "Approved"
            apiserver = own.processes["kube-apiserver"]
            apiserver.kill()
            apiserver.wait(60)
            wait_for(partial(several.says, leader, "this replica leads approver-default no longer: "), SECONDS)
            lab._start(own, "kube-apiserver", list(apiserver.args))  # type: ignore[arg-type]
            wait_for(lambda: several.site.admin("GET", "/readyz").status_code == 200, SECONDS)
            several.elected("alpha", "beta")
            assert several.site.decision(several.ask("n-02"))[0] == "Approved"
            assert max(several.approvals().values()) == 1
        finally:
            several.close()
