"""Which recipes the demo takes."""

from types import SimpleNamespace
from typing import Any

import pytest

from lab.demo import __main__ as demo
from lab.errors import UnusableError


def of(recipe: str) -> Any:
    return SimpleNamespace(options=SimpleNamespace(recipe=recipe))


def test_a_recipe_of_another_architecture_is_refused_before_anything_is_built() -> None:
    with pytest.raises(UnusableError) as caught:
        demo._joins(of("debian-12-arm64"), networked=True)
    assert str(caught.value) == (
        "the demo's machines are amd64, and debian-12-arm64 is for arm64; "
        "`netboot image build debian-12-arm64` builds it, tests/boot/test_arm64.py boots one of arm64"
    )


def test_a_node_joins_and_a_minimal_machine_boots() -> None:
    assert demo._joins(of("debian-12-node-demo"), networked=True)
    assert not demo._joins(of("debian-12-minimal"), networked=True)
