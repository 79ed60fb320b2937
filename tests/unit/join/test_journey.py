"""A join, from hello to the token, goes through the files that the page for contributors lists, and no others."""

import threading
from pathlib import Path

import pytest

from netboot import reread
from netboot.clock import SystemClock
from netboot.config_nodes import Cluster
from netboot.join.ports import ClusterAccess
from netboot.join.preconditions import Connected
from netboot.processes import join
from netboot.stores import enrolment_schema
from netboot.stores.facts import Facts
from netboot.web.join.app import create_app
from netboot.web.tls import Certificate
from tests import soft_tpm
from tests.joining import AUTHORITIES, ENDPOINTS, pinned
from tests.journeys import ROOT, Journey, listed
from tests.kube_fake import FakeCluster
from tests.processes import wait_for
from tests.sockets.join_site import JoinSite, make_join_site

PAGE = ROOT / "docs" / "contributing" / "join.md"
MOST = 46


@pytest.fixture
def journey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of a whole join through the real application, with a cluster in memory."""
    monkeypatch.setattr(reread, "GRAIN_SECONDS", 3600.0)  # on a slow machine new files are read once more in between
    site = JoinSite(tmp_path, make_join_site(tmp_path))
    assert site.config.join is not None
    machine = soft_tpm.Machine(site.boot())
    site.publish(pinned(machine))
    enrolment_schema.connect(site.config.data / "enrolment.db").close()  # as it is after the service's first start
    fake, recorded, ended = FakeCluster(), Journey(), threading.Event()
    others, journals = set(threading.enumerate()), list[Facts]()

    def journal(path: Path) -> Facts:
        journals.append(Facts(path))
        return journals[-1]

    monkeypatch.setattr(join, "Facts", journal)
    monkeypatch.setattr(join, "REPORT_SECONDS", 0.1)

    def connect(name: str, _cluster: Cluster) -> Connected:
        access = ClusterAccess(
            name, ENDPOINTS, AUTHORITIES, fake.leases, fake.tokens, fake.nodes, lambda: None, lambda: 0, str
        )
        return access, tuple

    certificate = Certificate(site.config.join.certificate, site.config.join.key)
    dependencies = join.compose(site.config, 0, certificate, SystemClock(), ended.is_set, connect)
    client = create_app(dependencies).test_client()
    wait_for(lambda: client.get("/readyz").status_code == 200)
    hello = machine.hello()
    challenge = recorded.record(lambda: client.post("/v1/join/hello", json=hello).get_json())
    statement = machine.attest(challenge)
    answer = recorded.record(lambda: client.post("/v1/join/attest", json=statement).get_json())
    assert isinstance(answer, dict) and answer["node_name"] == "gpu-001" and answer["token"]
    assert fake.secrets
    dependencies.clusters.end()
    ended.set()
    journals[0].close()
    for thread in set(threading.enumerate()) - others:  # or it says in the log of a later test that its files are gone
        thread.join(60)
        assert not thread.is_alive(), thread
    return recorded.files


def test_the_page_lists_the_files_of_a_join_in_order_and_they_are_few(journey: list[str]) -> None:
    assert listed(PAGE) == journey
    assert len(journey) <= MOST
