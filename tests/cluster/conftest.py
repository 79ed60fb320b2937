"""One control plane for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster

CACHE = Path(__file__).parents[2] / ".cache"


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(find(CACHE), tmp_path_factory.mktemp("cluster")) as running:
        yield running
