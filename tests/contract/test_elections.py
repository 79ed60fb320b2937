"""The Lease of an election in memory: the same suite as over a real API server (`tests/cluster/test_leaders.py`)."""

from collections.abc import Callable

import pytest

from netboot.lifecycle.election import Leases
from tests.elections import CASES, FakeElection, Ground


class FakeGround(FakeElection):
    """The fake as a `Ground`."""

    @property
    def leases(self) -> Leases:
        return self


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_fake(case: Callable[[Ground], None]) -> None:
    case(FakeGround())
