"""docs/shipped-recipes.md says what was recorded, and what was recorded is of the recipes as they are."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from images.build.gates import budget
from images.recipe import inherit
from images.store.store import Store
from lab import memory, shipped
from lab.work import ROOT
from tests.unit.images import samples


def test_the_page_is_what_the_records_make_it() -> None:
    text = shipped.PAGE.read_text()
    assert text.count(shipped.BEGIN) == text.count(shipped.END) == 1
    assert shipped.page(text, shipped.read()) == text, "run: python -m lab.shipped"


@pytest.mark.parametrize("name", inherit.shipped())
def test_a_record_is_of_what_the_recipe_asks_for_now(name: str) -> None:
    recipe, found = inherit.load(inherit.find(name)), shipped.read().get(name)
    if found is not None:
        asked = shipped.asked(recipe, found.kernel, found.heir)
        assert set(found.packages) == asked, f"build {name} again and record it, or take its record out"
    rows = [line for line in shipped.PAGE.read_text().splitlines() if line.startswith(f"| `{name}` |")]
    assert len(rows) == 1
    as_it_ships = name in shipped.BOOTED if found is None else not found.heir
    assert (shipped.NOT_BUILT in rows[0]) == (not as_it_ships)


@pytest.mark.parametrize(("name", "booted"), shipped.BOOTED.items())
def test_what_is_said_to_be_booted_is_booted_by_a_test_that_names_it(name: str, booted: str) -> None:
    for path in re.findall(r"`(tests/[^`]+)`", booted):
        texts = [(ROOT / path).read_text(), (ROOT / "tests/boot/conftest.py").read_text()]
        assert any(name in text for text in texts), f"neither {path} nor its conftest names {name}"


@pytest.mark.parametrize("name", shipped.read())
def test_a_release_build_is_within_its_recipe_s_budget_and_a_boot_by_hand_is_of_that_build(name: str) -> None:
    found, recipe = shipped.read()[name], inherit.load(inherit.find(name))
    if found.profile == "release":
        assert found.kernel_bytes + found.initrd_bytes + found.root_bytes <= recipe.budget_mib * budget.MIB
    if found.boot is not None and found.boot.root:
        assert found.boot.root == found.root, f"{name} was booted in another build: boot this one, or take it out"


def test_where_a_machine_was_booted_by_hand_the_day_and_the_build_are_said() -> None:
    plain = shipped.read()["ubuntu-24.04-gpu"].model_copy(update={"built": "2026-11-29", "root": "a" * 64})
    said = {
        "": None,
        "2026-11-27": shipped.Boot(day="2026-11-27"),
        "2026-11-29": shipped.Boot(day="2026-11-29"),
        "this": shipped.Boot(day="2026-11-30", root="a" * 64),
    }
    found = [shipped.booted("ubuntu-24.04-gpu", plain.model_copy(update={"boot": boot})) for boot in said.values()]
    assert found == [
        "no, not this build",
        "QEMU without a GPU, by hand, 2026-11-27: an earlier build",
        "QEMU without a GPU, by hand, 2026-11-29: no digest recorded",
        "QEMU without a GPU, by hand, 2026-11-30",
    ]
    assert shipped.booted("ubuntu-24.04-minimal", plain) == "no"


def test_nothing_is_recorded_of_what_does_not_ship() -> None:
    assert set(shipped.read()) <= set(inherit.shipped())


def test_an_image_of_before_its_recipe_asked_for_more_is_not_recorded(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    samples.add(store, tmp_path / "parts", "one", name="debian-12-minimal")
    with pytest.raises(SystemExit) as caught:
        shipped.record(store, store.images()[0], "dev", "2026-11-22")
    assert str(caught.value).startswith("debian-12-minimal asks for busybox-static, ")
    assert str(caught.value).endswith(" since it was built: build it again")


def test_a_record_of_an_heir_says_so_and_has_the_kernel_that_the_heir_named() -> None:
    recipe, kernel = inherit.load(inherit.find("ubuntu-24.04-minimal")), "6.8.0-149-generic"
    mine, heirs = shipped.asked(recipe, kernel), shipped.asked(recipe, kernel, "kernel by its name")
    assert (mine - heirs, heirs - mine) == ({"linux-image-virtual"}, {"linux-image-6.8.0-149-generic"})
    record = shipped.Record(
        built="2026-11-27",
        profile="dev",
        kernel=kernel,
        kernel_bytes=14 << 20,
        initrd_bytes=2 << 20,
        root_bytes=33 << 20,
        containers_bytes=0,
        installed=100,
        packages={f"linux-image-{kernel}": "6.8.0-149.149"},
        heir="kernel by its name",
    )
    made = shipped.table({recipe.name: record}).splitlines()
    (row,) = [line for line in made if line.startswith("| `ubuntu-24.04-minimal` |")]
    assert row.startswith(
        "| `ubuntu-24.04-minimal` | **NOT BUILT** as it ships; an heir: 2026-11-27 | dev | 6.8.0-149-generic "
        "| 100 | 49.0 | "
    )
    assert made[-1] == (
        "- `ubuntu-24.04-minimal` (an heir: kernel by its name): linux-image-6.8.0-149-generic 6.8.0-149.149"
    )


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 400), st.integers(0, 2048), st.booleans(), st.integers(0, 2**21), st.floats(0, 0.9))
def test_the_least_memory_is_where_the_gate_begins_to_pass(
    root: int, containers: int, join: bool, more: int, share: float
) -> None:
    image = budget.Image("mine", root * budget.MIB, containers * budget.MIB, join)
    least = memory.least_mib(image)
    assert budget.too_little(image, least + more) == ""
    assert budget.too_little(image, least - 1) != ""
    assert budget.too_little(image, int(least * share)) != ""


def test_a_machine_that_is_too_small_is_said_in_the_table() -> None:
    image = budget.Image("mine", 300 * budget.MIB, 400 * budget.MIB, join=True)
    assert memory.row(image, 2) == "| 2 GiB | `mine` | 316 | 287 | 128 | 620 | 55 | 100 | **480**: too little |"
    assert memory.row(image, 16) == "| 16 GiB | `mine` | 316 | 504 | 1,794 | 3,988 | 897 | 317 | 8,076 |"
    assert list(memory.rows([image]))[2:] == [memory.row(image, gib) for gib in (2, 16, 2048)]
