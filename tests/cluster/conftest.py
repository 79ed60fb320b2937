"""One control plane for all tests of this folder, which ends with them: it does not idle beside the others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.kube.accounts import Admin, apply_manifests, kubeconfigs
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from netboot.kube.connection import Connection, connect
from tests.kube_world import RealWorld

CACHE = Path(__file__).parents[2] / ".cache"


@pytest.fixture(scope="package")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(find(CACHE), tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="package")
def accounts(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The manifests are applied; kubeconfigs by role (issuer, approver, nodes)."""
    apply_manifests(control_plane)
    return kubeconfigs(control_plane, tmp_path_factory.mktemp("kubeconfigs"))


@pytest.fixture(scope="package")
def as_admin(control_plane: Cluster) -> Iterator[Admin]:
    """The administrator, by plain HTTP."""
    admin = Admin(control_plane)
    yield admin
    admin.close()


@pytest.fixture(scope="package")
def break_glass(control_plane: Cluster) -> Iterator[Admin]:
    """The administrator, of the group that may touch what is netboot's on a Node."""
    admin = Admin(control_plane, pair="break-glass")
    yield admin
    admin.close()


@pytest.fixture(scope="package")
def connections(accounts: dict[str, Path]) -> Iterator[dict[str, Connection]]:
    opened = {role: connect(path) for role, path in accounts.items()}
    yield opened
    for one in opened.values():
        one.close()


@pytest.fixture
def world(connections: dict[str, Connection], as_admin: Admin) -> Iterator[RealWorld]:
    real = RealWorld(connections, as_admin)
    yield real
    real.clean()
