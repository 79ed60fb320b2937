"""Which recipes the demo takes."""

from types import SimpleNamespace
from typing import Any

import pytest

from lab.demo import __main__ as demo
from lab.errors import UnusableError


def of(recipe: str, state: str = "embedded", *, discover: bool = False) -> Any:
    return SimpleNamespace(options=SimpleNamespace(recipe=recipe, state=state, discover=discover))


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


@pytest.mark.parametrize(
    ("recipe", "networked", "state", "why"),
    [
        ("debian-12-node-demo", True, "kubernetes", ""),
        ("debian-12-minimal", True, "kubernetes", "machines join, and those of debian-12-minimal join none"),
        ("debian-12-minimal", True, "embedded", "introduces itself by, and those of debian-12-minimal join none"),
        ("debian-12-node-demo", False, "kubernetes", "and they need a network of their own for that"),
        ("debain-12-node-demo", True, "kubernetes", "debain-12-node-demo"),
    ],
)
def test_what_is_shown_with_a_cluster_is_refused_where_machines_join_none(
    recipe: str, networked: bool, state: str, why: str
) -> None:
    asked = of(recipe, state, discover=state == "embedded")
    if not why:
        assert demo._joins(asked, networked=networked)
        return
    with pytest.raises(UnusableError, match=f"{why}"):
        demo._joins(asked, networked=networked)
