"""What a replica sends that does not lead: it reads, and nothing else leaves it, whatever it is that would change."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from netboot.join.certificates import BootCertificates
from netboot.join.errors import NotLeadingError
from netboot.join.node_drains import DrainedNode, Pod
from netboot.join.node_events import NodeEvent
from netboot.join.node_said import GateSaid
from netboot.join.signing import Signing
from netboot.kube.certificates import KubeIssuedCertificates
from netboot.kube.connection import Connection, connect
from netboot.kube.drains import KubeDrains
from netboot.kube.events import KubeNodeEvents
from netboot.kube.nodes import KubeNodes
from netboot.kube.requests import KubeCertificateRequests
from netboot.kube.secrets import KubeTokens
from tests.kube_fake import FakeCluster
from tests.kubelets import client
from tests.records import START
from tests.unit.test_kube_transport import Server, serving

NODE = FakeCluster().make_node("n-1")
DRAINED = DrainedNode("n-1", "uid-1", START, True, False, (), {}, {}, "1")
POD = Pod("default", "a", "uid-2", "ReplicaSet", False, False, False, False, False)
RECORD = BootCertificates(cluster="default", machine="n-1", boot="", holder="", generation=0, version="1")
EVENT = NodeEvent("n-1", "uid-1", "Booted", "False", "Stuck", "it hangs", START)
ACTS: dict[str, Callable[[Connection], object]] = {
    "approve": lambda made: KubeCertificateRequests(made).approve(client(), "Netboot", ""),
    "deny": lambda made: KubeCertificateRequests(made).deny(client(), "Netboot", ""),
    "token": lambda made: KubeTokens(made).delete("abc123"),
    "record": lambda made: KubeIssuedCertificates(made, "netboot").write(RECORD),
    "signing": lambda made: KubeIssuedCertificates(made, "netboot").write_signing(
        Signing(seconds=86_400, since_ms=1, request="r")
    ),
    "taint": lambda made: KubeNodes(made).taint(NODE, []),
    "gate": lambda made: KubeNodes(made).tell_gate(NODE, GateSaid("True", "Open", ""), START),
    "delete": lambda made: KubeNodes(made).delete("n-1", "uid-1"),
    "evict": lambda made: KubeDrains(made).evict(POD),
    "drain": lambda made: KubeDrains(made).change(DRAINED, [], {}),
    "event": lambda made: KubeNodeEvents(made, "test").create(EVENT),
    "count": lambda made: KubeNodeEvents(made, "test").count("e", 2, START),
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(Server(tmp_path)) as running:
        running.answer = lambda _method, _path: (404, {"reason": "NotFound", "message": "there is none"})
        yield running


@contextmanager
def refusing() -> Iterator[None]:
    raise NotLeadingError("another replica leads")
    yield


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_who_does_not_lead_changes_nothing(server: Server, act: Callable[[Connection], object]) -> None:
    with closing(connect(server.path, acting=refusing)) as connection:
        with pytest.raises(NotLeadingError):
            act(connection)
        assert {asked.split()[0] for asked in server.asked} <= {"GET"}


def test_who_does_not_lead_reads(server: Server) -> None:
    with closing(connect(server.path, acting=refusing)) as connection:
        assert KubeNodes(connection).node("n-1") is None
    assert server.asked == ["GET /api/v1/nodes/n-1"]


def test_the_lead_is_held_for_as_long_as_a_request_is_under_way(server: Server) -> None:
    steps: list[str] = []

    @contextmanager
    def acting() -> Iterator[None]:
        steps.append("begins")
        try:
            yield
        finally:
            steps.append("ends")

    def answer(_method: str, _path: str) -> tuple[int, object]:
        steps.append("asked")
        return 404, {}

    server.answer = answer
    with closing(connect(server.path, acting=acting)) as connection:
        KubeTokens(connection).delete("abc123")
    assert steps == ["begins", "asked", "ends"]
