"""Fragments of recipes that pages show: each is one, as far as that can be told without building it."""

import re
from pathlib import Path

import pytest

from images.recipe.inherit import load
from tests.unit.images.test_recipe import write

ROOT = Path(__file__).parents[3]
BASES = {"imex": "ubuntu-24.04-gpu", "doca-ofed": "ubuntu-24.04-gpu", "vendor": "debian-12-cpu"}


def fragments() -> dict[str, str]:
    """By the name in its first line."""
    pages = "\n".join((ROOT / "docs" / name).read_text() for name in ("gpu.md", "features.md"))
    return {
        match[1]: match[2]
        for match in re.finditer(r"^```yaml\n# ([\w-]+)\.yaml\n(.*?)^```$", pages, re.MULTILINE | re.DOTALL)
    }


@pytest.mark.parametrize("name", BASES)
def test_a_fragment_that_a_page_shows_is_one(name: str, tmp_path: Path) -> None:
    text = fragments()[name]
    for key in re.findall(r"signed_by: (\S+)", text):
        (tmp_path / key).write_text("a key")
    write(tmp_path, text, f"{name}.yaml")
    recipe = load(write(tmp_path, f"base: {BASES[name]}\nfeatures: [./{name}.yaml]\n"))
    assert recipe.features == (*load_base(name, tmp_path), f"./{name}.yaml")
    assert all(package in recipe.installs() for package in recipe.requires.packages)


def load_base(name: str, folder: Path) -> tuple[str, ...]:
    return load(write(folder, f"base: {BASES[name]}\n", "plain.yaml")).features
