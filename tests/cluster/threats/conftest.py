"""One service for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.kube.cluster import Cluster
from tests.cluster.threats.chassis import Chassis
from tests.cluster.threats.live_site import BUDGETS, SETS, LiveSite
from tests.cluster.threats.live_site import live_site as start
from tests.soft_tpm import PCRS

ROLE = "node-role.kubernetes.io/gpu"
"""A label that no kubelet may write."""


@pytest.fixture(scope="package")
def site(
    control_plane: Cluster, accounts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveSite]:
    machines = [Chassis(f"k-{number:02}", number) for number in (*range(1, 41), *range(100, 130))]
    stands = {"rack": "r1", "topology": {"accelerator_domain": "nvl-3"}}
    machines += [Chassis("top-42", 42, declared=stands, node={"labels": {"pool": "a", ROLE: ""}})]
    machines += [Chassis("veto-43", 43, declared={"class": "vetoed"})]
    machines += [Chassis("pcr-41", 41, declared={"pcrs": {"7": [PCRS[7].hex()]}})]
    machines += [Chassis(f"new-{number}", number, on_record=False) for number in range(51, 57)]
    machines += [
        Chassis(f"bare-{number}", number, on_record=False, declared={"identity": "nonce"}) for number in range(61, 64)
    ]
    machines += [Chassis("roll-71", 71, declared={"profile": "rolled"})]
    machines += [
        Chassis(f"ring-{number}", number, declared={"profile": "ring", "rack": rack})
        for number, rack in ((72, "r2"), (73, "r3"), (74, "r3"))
    ]
    machines += [
        Chassis("next-75", 75, declared={"rack": "r2"}),
        Chassis("says-76", 76, declared={"class": "reporting"}),
    ]
    machines += [Chassis(f"late-{number}", number, declared={"class": "prompt"}) for number in (77, 78)]
    with start(tmp_path_factory.mktemp("threats") / "site", control_plane, accounts, *machines) as one:
        yield one


@pytest.fixture
def no_workload_left(site: LiveSite) -> Iterator[None]:
    """Takes the ReplicaSet and the budget of a test away, however it ended: the next one has some of the same names."""
    yield
    for path in (f"{SETS}/s", f"{BUDGETS}/b"):
        site.admin("DELETE", path)
