"""Whether a cluster may be used is asked often enough, and not too often."""

from pathlib import Path

import pytest

from netboot.config_nodes import Cluster
from netboot.join.errors import ClusterUnavailableError
from netboot.kube.clusters import FIT_SECONDS, UNFIT_SECONDS, Clusters, Preflight
from tests.kube_fake import FakeCluster


def test_a_fit_cluster_is_asked_once_a_minute_and_an_unfit_one_soon_again() -> None:
    cluster, now = FakeCluster(), 0.0
    preflight = Preflight("default", cluster.preconditions, "netboot", lambda: now)
    preflight()
    asked = len(cluster.calls)
    now = FIT_SECONDS - 1
    preflight()
    assert len(cluster.calls) == asked
    cluster.down = "the apiserver does not answer"
    now = FIT_SECONDS
    with pytest.raises(ClusterUnavailableError, match="the apiserver does not answer"):
        preflight()
    cluster.down = ""
    preflight()
    now += FIT_SECONDS
    cluster.preconditions.version = "v1.31.0"
    with pytest.raises(ClusterUnavailableError, match="cluster default is not fit to be joined through us: "):
        preflight()
    cluster.preconditions.version = "v1.34.4"
    with pytest.raises(ClusterUnavailableError, match="not fit"):
        preflight()
    now += UNFIT_SECONDS
    preflight()


def test_files_that_are_missing_are_said_when_they_are_needed(tmp_path: Path) -> None:
    clusters = Clusters({"default": Cluster(endpoints=("https://192.0.2.1:6443",), authority=tmp_path / "ca.crt")})
    assert (list(clusters), len(clusters), clusters.get("other")) == (["default"], 1, None)
    with pytest.raises(ClusterUnavailableError, match=r"clusters\.default\.authority: .*ca\.crt: No such file"):
        clusters.get("default")
