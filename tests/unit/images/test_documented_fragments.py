"""Fragments of recipes that pages show: each is one, as far as that can be told without building it."""

import re
from pathlib import Path

import pytest

from images.recipe.inherit import load
from tests.unit.images.test_recipe import write

ROOT = Path(__file__).parents[3]
BASES = {"imex": "ubuntu-24.04-gpu", "doca-ofed": "ubuntu-24.04-gpu", "vendor": "debian-12-cpu"}
HEIRS = {
    "gpu-with-ways": {"openssh-server", "systemd-journal-remote"},
    "gpu-with-apparmor": {"apparmor"},
}
"""What each installs more than the recipe that it is an heir of."""


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


@pytest.mark.parametrize("name", HEIRS)
def test_an_heir_that_a_page_shows_is_a_recipe(name: str, tmp_path: Path) -> None:
    plain = load(write(tmp_path, "base: ubuntu-24.04-gpu\n", "plain.yaml"))
    heir = load(write(tmp_path, fragments()[name], f"{name}.yaml"))
    assert set(heir.installs()) - set(plain.installs()) == HEIRS[name]


def test_imex_comes_from_the_source_that_the_fabric_manager_comes_from(tmp_path: Path) -> None:
    """Ubuntu's multiverse has it, of the driver's version: no repository of NVIDIA's for one architecture is named."""
    assert "sources:" not in fragments()["imex"]
    base = load(write(tmp_path, "base: ubuntu-24.04-gpu\n", "plain.yaml"))
    (fabric,) = [source for source in base.sources if source.name == "nvidia-fabric"]
    assert (fabric.url, "multiverse" in fabric.components) == ("http://archive.ubuntu.com/ubuntu", True)
    assert "nvidia-fabricmanager-580" in base.installs()


def load_base(name: str, folder: Path) -> tuple[str, ...]:
    return load(write(folder, f"base: {BASES[name]}\n", "plain.yaml")).features
