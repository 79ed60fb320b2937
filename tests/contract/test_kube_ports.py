"""The ports of join over the cluster in memory: the same suite as over a real apiserver (`tests/cluster`)."""

from collections.abc import Callable

import pytest

from netboot.join.certificates import IssuedCertificates
from netboot.join.control_plane import ControlPlane
from netboot.join.errors import ClusterUnavailableError
from netboot.join.ports import CertificateRequests, Csr, Leases, Nodes, Tokens
from netboot.join.self_check import Preconditions
from netboot.lifecycle.control_planes import ControlNode
from tests.kube_contract import CASES, World, credential
from tests.kube_fake import FakeCluster
from tests.kubelets import pem

CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"


class FakeWorld:
    """The fake as a `World`."""

    def __init__(self) -> None:
        self.fake = FakeCluster()
        self.leases: Leases = self.fake.leases
        self.tokens: Tokens = self.fake.tokens
        self.nodes: Nodes = self.fake.nodes
        self.collector: Nodes = self.fake.nodes
        self.requests: CertificateRequests = self.fake.requests
        self.preconditions: Preconditions = self.fake.preconditions
        self.certificates: IssuedCertificates = self.fake.certificates
        self.control_plane: ControlPlane = self.fake.control_plane

    def make_node(self, name: str, *, ready: bool = False, boot_id: str = "") -> None:
        self.fake.make_node(name, ready=ready, boot_id=boot_id)

    def make_control(self, name: str, *, ready: bool, etcd: bool | None) -> None:
        self.fake.control_plane.there[name] = ControlNode(ready=ready, etcd=etcd)

    def keep_node(self, name: str, *, kept: bool) -> None:
        self.fake.kept = {name} if kept else set()

    def submit(self, name: str, *, ours: bool = True) -> None:
        self.fake.submit(
            Csr(
                name=name,
                uid="",
                version="",
                signer=CLIENT if ours else "example.com/other",
                username="system:bootstrap:abc123",
                groups=("system:bootstrappers", "system:authenticated"),
                usages=("digital signature", "client auth"),
                expiration_seconds=3600,
                pem=pem("contract"),
                decided=False,
            )
        )

    def touch(self, name: str) -> None:
        self.fake.touch(name)

    def token_ids(self) -> set[str]:
        return set(self.fake.secrets)

    def bind(self, name: str, role: str, group: str) -> None:
        self.fake.preconditions.bind(name, role, group)

    def unbind(self, name: str) -> None:
        self.fake.preconditions.unbind(name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_fake(case: Callable[[World], None]) -> None:
    case(FakeWorld())


def test_a_fake_cluster_that_is_down_says_so_to_everybody() -> None:
    fake = FakeCluster(down="the apiserver lab cannot be reached")
    calls: list[Callable[[], object]] = [
        lambda: fake.leases.read("default", "m"),
        lambda: fake.leases.write(credential("m")),
        lambda: fake.tokens.delete("abc123"),
        lambda: fake.nodes.node("n"),
        lambda: list(fake.nodes.watch(1)),
        lambda: list(fake.requests.watch(1)),
        lambda: fake.preconditions.server_version(),
        lambda: fake.control_plane.nodes(),
        lambda: fake.control_plane.etcd("n"),
    ]
    for call in calls:
        with pytest.raises(ClusterUnavailableError, match="the apiserver lab cannot be reached"):
            call()


def test_an_answer_that_was_lost_has_had_its_effect() -> None:
    fake = FakeCluster(fail_next=1)
    with pytest.raises(ClusterUnavailableError):
        fake.leases.write(credential("m"))
    assert fake.leases.read("default", "m") is not None
    assert fake.calls == ["leases.write m", "leases.read m"]
