"""What a recipe comes to today, as a lock: its packages are installed once, which is also the build's first step."""

import os

from images import locking
from images.cache import Cache
from images.documents import debian
from images.errors import ImageError
from images.graph import Progress
from images.locking import Lock
from images.pipeline import bootstrap_inputs, timed
from images.recipe import Recipe
from images.sources import probe
from images.steps import bootstrap


def resolve(recipe: Recipe, cache: Cache, progress: Progress) -> Lock:
    """The lock of a recipe; one that it names already is left aside.

    Raises:
        SourceUnavailableError: a mirror does not answer. CommandError: a package is not there. ImageError: not root.
    """
    if os.geteuid() != 0:
        raise ImageError("a lock is made by installing the packages once, and that needs root; run it with sudo")
    recipe = recipe.model_copy(update={"lock": None})
    mirrors = timed(progress, "mirrors", lambda: (probe(recipe.sources), False))
    created = max(mirror.newest for mirror in mirrors)
    inputs = bootstrap_inputs(recipe, mirrors, created, cache.packages)

    def install() -> tuple[object, bool]:
        return cache.obtain(bootstrap.STEP, inputs, lambda line: progress.line(bootstrap.STEP.name, line))

    base = timed(progress, bootstrap.STEP.name, install)
    installed = debian.installed((base / "root/var/lib/dpkg/status").read_text(encoding="utf-8"))
    identities = frozenset(package.identity for package in installed)
    facts = {
        "recipe": recipe.name,
        "suite": recipe.suite,
        "architecture": recipe.architecture,
        "created": created,
        "wanted": inputs.packages,
        "sources": [
            {"url": "file:" if mirror.url.startswith("file:") else mirror.url, "suite": suite, "inrelease": release}
            for mirror in mirrors
            for suite, release in zip(mirror.suites, mirror.releases, strict=True)
        ],
    }
    return locking.lock_of(facts, identities, debian.origins(base / "root/var/lib/apt/lists", identities))
