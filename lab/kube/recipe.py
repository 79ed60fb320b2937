"""The recipe of the lab's nodes: a shipped one, with the lab's own kubelet and container images in their places."""

import shutil
from pathlib import Path

from lab.kube.binaries import find
from lab.kube.oci import demo_images, write_layout
from lab.kube.repository import repository

_RECIPE = """\
# Made by the lab: {base} with a kubelet and container images that need no network.
base: {base}
description: {base}, kubelet and container images of the lab
sources:
  - name: kubernetes
    url: {url}
    suites: [/]
    signed_by: {key}
container_images: [containers.tar]
"""


def node_recipe(base: str, folder: Path, cache: Path) -> Path:
    """A recipe in `folder`, named like the shipped one from which it derives.

    Raises:
        NoKubernetesError, UnusableError, EndedError: there is no kubelet to be had, or a tool is missing or failed.
    """
    source = repository(find(cache), cache / "lab")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source.key, folder / source.key.name)
    write_layout(demo_images(), folder / "containers.tar")
    recipe = folder / f"{base}.yaml"
    recipe.write_text(_RECIPE.format(base=base, url=source.url, key=source.key.name))
    return recipe
