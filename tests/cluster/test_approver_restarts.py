"""What the approver survives, against a real control plane: its own end, the apiserver's, and that of its watches.

In a module of its own, for here no other approver may run beside the one that ends.
"""

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.kube import cluster as lab
from lab.kube.accounts import apply_manifests, kubeconfigs
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from tests.cluster.conftest import CACHE
from tests.cluster.joining import SECONDS, Site
from tests.kubelets import client
from tests.processes import wait_for

pytestmark = pytest.mark.cluster


@pytest.fixture
def alone(control_plane: Cluster, accounts: dict[str, Path], tmp_path: Path) -> Iterator[Site]:
    """A site of its own, of which no approver runs yet."""
    made = Site(control_plane, accounts, tmp_path)
    yield made
    made.close()


def test_killed_between_approve_and_delete(alone: Site) -> None:
    """It has approved and dies before it deletes the token; the next one ends what it began."""
    site = alone
    token = site.issue("n-20")
    with site.approver("die") as process:
        name = site.ask(token, client("n-20"), "killed")
        assert wait_for(process.poll) == -9
    assert site.decision(name)[0] == "Approved"
    assert site.has_token(token)
    with site.approver():
        wait_for(lambda: not site.has_token(token), SECONDS)
        wait_for(lambda: any("killed" in body for body in site.approved_phases()))


def test_watches_that_expire(alone: Site) -> None:
    """With rounds of a second, every watch that it has is over again and again."""
    site = alone
    with site.approver("round=1") as process:
        for number in (21, 22, 23):
            machine = f"n-{number}"
            name = site.ask(site.issue(machine), client(machine), f"expiry-{number}")
            assert site.decision(name)[0] == "Approved"
            until = site.status().at_ms + 1_500
            wait_for(functools.partial(later, site, until))
        assert process.poll() is None
        assert site.status().unavailable == 0


def later(site: Site, at_ms: int) -> bool:
    """Whether the approver has said something after this time."""
    return site.status().at_ms > at_ms


def test_an_apiserver_that_is_restarted_while_it_watches(tmp_path: Path) -> None:
    with cluster(find(CACHE), tmp_path / "cluster") as own:
        apply_manifests(own)
        (tmp_path / "site").mkdir()
        site = Site(own, kubeconfigs(own, tmp_path / "kubeconfigs"), tmp_path / "site")
        with site.approver() as process:
            assert site.decision(site.ask(site.issue("n-01"), client("n-01"), "before"))[0] == "Approved"
            wait_for(lambda: site.status().ok)
            apiserver = own.processes["kube-apiserver"]
            apiserver.kill()  # asked to end, it would wait a minute for those who watch
            apiserver.wait(60)
            wait_for(lambda: (said := site.status()).ok is False and "apiserver" in said.message, SECONDS)
            lab._start(own, "kube-apiserver", list(apiserver.args))  # type: ignore[arg-type]
            wait_for(lambda: site.admin("GET", "/readyz").status_code == 200, SECONDS)
            token = site.issue("n-02")
            assert site.decision(site.ask(token, client("n-02"), "after"))[0] == "Approved"
            wait_for(lambda: not site.has_token(token), SECONDS)
            wait_for(lambda: site.status().ok is True, SECONDS)
            assert process.poll() is None
        site.close()
