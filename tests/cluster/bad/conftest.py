"""One service for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.kube.cluster import Cluster
from tests.cluster.bad.kit import Kit
from tests.cluster.bad.whole import Whole
from tests.cluster.bad.whole import whole as start
from tests.soft_tpm import PCRS


@pytest.fixture(scope="package")
def whole(
    control_plane: Cluster, accounts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Whole]:
    kits = [Kit(f"k-{number:02}", number) for number in range(1, 41)]
    kits += [Kit("pcr-41", 41, declared={"pcrs": {"7": [PCRS[7].hex()]}})]
    kits += [Kit(f"new-{number}", number, on_record=False) for number in range(51, 57)]
    kits += [Kit(f"bare-{number}", number, on_record=False, declared={"identity": "nonce"}) for number in range(61, 64)]
    with start(tmp_path_factory.mktemp("whole") / "site", control_plane, accounts, *kits) as one:
        yield one
