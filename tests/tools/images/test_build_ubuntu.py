"""Every Ubuntu recipe but the dpu's (test_build_arm64.py), really built where its mirrors answer, by the quick profile.

Where one does not answer the end of this run says so in red: tests/plugins/unbuilt.py.
"""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from images.artifact.manifest import Manifest
from images.recipe import inherit
from images.store.store import Store
from lab.kube.recipe import node_recipe
from lab.work import CACHE
from tests.image_keys import image_keys
from tests.plugins.unbuilt import Unbuilt
from tests.tools.images import containerd
from tests.tools.images.image_build import blob, packages, run_image_build

pytestmark = pytest.mark.tools

RECIPES = (
    "ubuntu-24.04-minimal",
    "ubuntu-24.04-node",
    "ubuntu-24.04-node-demo",
    "ubuntu-24.04-cpu",
    "ubuntu-24.04-gpu",
)


@dataclass(frozen=True, slots=True)
class Built:
    """A built image, and its root, unpacked when it is first asked for."""

    folder: Path
    manifest: Manifest

    @property
    def root(self) -> Path:
        target = self.folder / f"root-{self.manifest.name}"
        if not target.is_dir():
            packed = blob(self.folder, self.manifest, "root")
            argv = ["unsquashfs", "-quiet", "-no-progress", "-d", str(target), str(packed)]
            subprocess.run(argv, check=True)
        return target


Build = Callable[[str], Built | None]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, unbuilt: Unbuilt) -> Build:
    """Builds a recipe once; None: a mirror does not answer."""
    folder = tmp_path_factory.mktemp("ubuntu")
    shutil.copytree(image_keys(), folder / "keys")
    made: dict[str, Built | None] = {}

    def build(name: str) -> Built | None:
        if name not in made:
            recipe = node_recipe(name, folder / "recipes" / name, CACHE)
            if not inherit.load(recipe).join:  # without a kubelet nothing of the lab's is wanted
                recipe.write_text(f"base: {name}\n")
            with recipe.open("a") as text:
                text.write("budget_mib: 400\n")  # that of a recipe is for its release profile
            result = unbuilt.unless_built(name, lambda: run_image_build(folder, recipe, "--profile", "dev"))
            store = Store(folder / "store")
            made[name] = Built(folder, store.manifest(result["image"])) if result else None
        return made[name]

    return build


def test_every_ubuntu_recipe_is_built_here_or_with_arm64() -> None:
    assert {name for name in inherit.shipped() if name.startswith("ubuntu")} == {*RECIPES, "ubuntu-24.04-dpu"}


@pytest.mark.parametrize("name", RECIPES)
def test_an_ubuntu_image_is_built_with_all_that_its_recipe_asks_for(built: Build, name: str) -> None:
    image = built(name)
    if image is None:
        return
    manifest = image.manifest
    assert (manifest.name, manifest.distribution, manifest.suite) == (name, "ubuntu", "noble")
    asked = {
        package.replace("{kernel}", manifest.kernel_version) for package in inherit.load(inherit.find(name)).installs()
    }
    assert asked <= packages(image.folder, manifest).keys()


def test_ubuntus_containerd_has_the_handler_nvidia_and_reads_cdi(built: Build) -> None:
    image = built("ubuntu-24.04-node")
    if image is None:
        return
    version, settings = containerd.understood(image.root, containerd.of_toolkit("ubuntu"))
    assert version == 3, "the file is of version 2, which containerd 2 takes for its own"
    assert containerd.handler(settings) == containerd.HANDLER
    assert (settings["enable_cdi"], settings["cdi_spec_dirs"]) == (True, ["/etc/cdi", "/run/cdi"])
    assert settings["containerd"]["default_runtime_name"] == "runc"
    _, plain = containerd.understood(image.root, (image.root / "etc/containerd/config.toml").read_text())
    assert "nvidia" not in plain["containerd"]["runtimes"]
    assert plain["cni"] == settings["cni"]
