"""Recipes of the lab's nodes: a shipped one, with the lab's own kubelet and container images in their places; and what
a site derives from one to roll out."""

import json
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
ARGUMENT = "transparent_hugepage=madvise"
_SECOND = """\
# Made by the lab: the same packages and files, and one argument of the kernel more. Steps of the build that have
# nothing to do with that come from the cache.
base: {base}
description: {name}, huge pages for who asks for them
kernel: {{arguments: [{argument}]}}
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


def second_recipe(base: Path, name: str, folder: Path) -> Path:
    """A recipe in `folder` that derives from `base`, whose image is `name`: of an image `<name>-second`."""
    folder.mkdir(parents=True, exist_ok=True)
    recipe = folder / f"{name}-second.yaml"
    recipe.write_text(_SECOND.format(base=json.dumps(str(base.absolute())), name=name, argument=ARGUMENT))
    return recipe
