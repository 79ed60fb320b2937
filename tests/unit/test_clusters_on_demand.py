"""Whether a cluster may be used is asked often enough, and not too often."""

from functools import partial
from pathlib import Path

import pytest

from netboot.config import Cluster
from netboot.join.errors import ClusterUnavailableError
from netboot.join.parts import Target
from netboot.join.preconditions import check
from netboot.web.clusters import FIT_SECONDS, UNFIT_SECONDS, OnDemand, Reached
from netboot.web.join.compose import connected
from tests.kube_fake import FakeCluster

ENDPOINTS = ("https://192.0.2.1:6443",)


def test_a_fit_cluster_is_asked_once_a_minute_and_an_unfit_one_soon_again(tmp_path: Path) -> None:
    cluster, now = FakeCluster(), 0.0

    def reach(name: str, one: Cluster) -> Reached:
        ports = (cluster.leases, cluster.tokens, cluster.nodes)
        return Target(name, one.endpoints, "PEM", *ports), partial(check, cluster.preconditions)

    clusters = OnDemand({"default": Cluster(endpoints=ENDPOINTS, authority=tmp_path)}, reach, lambda: now)
    assert clusters.target("other") is None
    assert clusters.target("default") is clusters.target("default")
    clusters.gate("default")
    asked = len(cluster.calls)
    now = FIT_SECONDS - 1
    clusters.gate("default")
    assert len(cluster.calls) == asked
    cluster.down = "the apiserver does not answer"
    now = FIT_SECONDS
    with pytest.raises(ClusterUnavailableError, match="the apiserver does not answer"):
        clusters.gate("default")
    cluster.down = ""
    clusters.gate("default")
    now += FIT_SECONDS
    cluster.preconditions.version = "v1.31.0"
    with pytest.raises(ClusterUnavailableError, match="cluster default is not fit to be joined through us: "):
        clusters.gate("default")
    cluster.preconditions.version = "v1.34.4"
    with pytest.raises(ClusterUnavailableError, match="not fit"):
        clusters.gate("default")
    now += UNFIT_SECONDS
    clusters.gate("default")


def test_files_that_are_missing_are_said_when_they_are_needed(tmp_path: Path) -> None:
    clusters = OnDemand({"default": Cluster(endpoints=ENDPOINTS, authority=tmp_path / "ca.crt")}, connected)
    with pytest.raises(ClusterUnavailableError, match=r"ca\.crt cannot be read: No such file"):
        clusters.target("default")
