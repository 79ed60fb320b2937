"""The Secret in memory, by which unit tests go: the same suite as over a real API server (`tests/cluster`)."""

from collections.abc import Callable

import pytest

from tests.shared_keys_contract import CASES, FakeSecret, World


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(case: Callable[[World], None]) -> None:
    case(FakeSecret())
