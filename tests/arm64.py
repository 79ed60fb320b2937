"""Recipes of arm64 that can be built here: the shipped ones, with a kubelet that comes from no network."""

from pathlib import Path

from lab.kube.repository import repository
from lab.work import CACHE

_RECIPE = """\
base: {base}
profile: dev
sources:
  - {{name: kubernetes, url: '{url}', suites: [/], signed_by: kubernetes.asc}}
"""


def recipe(base: str, folder: Path) -> Path:
    """An heir in `folder`, named like its base. Its kubelet is a script: there is none for arm64 here.

    Its repository is kept in the cache, so that all builds of such a recipe are one, and the next run's too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kubelet").write_text("#!/bin/sh\necho not the real one\n")
    made = repository(folder, CACHE / "lab", "arm64")
    (folder / "kubernetes.asc").write_bytes(made.key.read_bytes())
    path = folder / f"{base}.yaml"
    path.write_text(_RECIPE.format(base=base, url=made.url))
    return path
