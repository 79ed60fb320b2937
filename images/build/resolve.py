"""What a recipe comes to today, as a lock: its packages are installed once, which is also the build's first step."""

import os
from functools import partial
from pathlib import Path

from images.build.cache import Cache
from images.build.context import Context
from images.build.graph import Progress
from images.build.pipeline import timed
from images.build.plan import plan
from images.build.sources import probe
from images.build.step import Product
from images.build.steps import bootstrap, drivers
from images.errors import ImageError
from images.formats import debian
from images.recipe import lockfile
from images.recipe.lockfile import Lock, Locked, LockedSource
from images.recipe.recipe import Recipe


def resolve(recipe: Recipe, cache: Cache, progress: Progress) -> Lock:
    """The lock of a recipe; one that it names already is left aside.

    Raises:
        SourceUnavailableError: a mirror does not answer. CommandError: a package is not there. ImageError: not root.
    """
    if os.geteuid() != 0:
        raise ImageError("a lock is made by installing the packages once, and that needs root; run it with sudo")
    recipe = recipe.model_copy(update={"lock": None})
    mirrors = timed(progress, "mirrors", lambda: (probe(recipe.sources), False))
    _, context = plan(Context(recipe, {}, mirrors, packages=cache.packages))

    def install() -> tuple[Product, bool]:
        inputs, versions = bootstrap.STEP.inputs(context, {}), bootstrap.STEP.tool_versions(context)
        return cache.obtain(bootstrap.STEP, inputs, partial(progress.line, bootstrap.STEP.name), versions)

    def compiler() -> tuple[tuple[Locked, ...], bool]:
        inputs = drivers.build_root(drivers.STEP.inputs(context, {}))
        with cache.scratch() as scratch:
            say = partial(progress.line, drivers.STEP.name)
            bootstrap.bootstrap(inputs, scratch, say, drivers.OPTIONS)
            return _locked(scratch / "root"), False

    packages = _locked(timed(progress, bootstrap.STEP.name, install) / "root")
    build = timed(progress, drivers.STEP.name, compiler) if recipe.drivers else ()
    return Lock(
        recipe=recipe.name,
        suite=recipe.suite,
        architecture=recipe.architecture,
        created=context.created,
        wanted=recipe.installs(),
        packages=packages,
        build_wanted=recipe.compiles(),
        build_packages=build,
        sources=tuple(
            LockedSource(url="file:" if mirror.url.startswith("file:") else mirror.url, suite=suite, inrelease=release)
            for mirror in mirrors
            for suite, release in zip(mirror.suites, mirror.releases, strict=True)
        ),
    )


def _locked(root: Path) -> tuple[Locked, ...]:
    """What is installed in a root that has apt's lists still."""
    installed = debian.installed((root / "var/lib/dpkg/status").read_text(encoding="utf-8"))
    identities = frozenset(package.identity for package in installed)
    return lockfile.locked(identities, debian.origins(root / "var/lib/apt/lists", identities))
