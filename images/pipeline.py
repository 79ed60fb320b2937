"""The build: steps that read like the recipe, from package mirrors to an image that can be signed."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from images import architecture
from images.cache import Cache
from images.containers import Archive
from images.containers import read as read_archive
from images.errors import ImageError
from images.graph import Graph, Progress
from images.manifest import Manifest, read_manifest
from images.node.files import agent_files
from images.overlay import read_folder
from images.recipe import Recipe
from images.signing import SigningKey
from images.sources import Mirror, probe
from images.step import Product, Step
from images.steps import bootstrap, configure, drivers, initrd, kernel, manifest, root, sign, store
from images.store import Store

NODE = Path(str(files("images") / "node"))
STEPS: tuple[Step[Any], ...] = (
    bootstrap.STEP,
    drivers.STEP,
    configure.STEP,
    kernel.STEP,
    root.STEP,
    initrd.STEP,
    manifest.STEP,
)
"""The steps whose products are cached, in their order."""


@dataclass(frozen=True, slots=True)
class Built:
    """A build's end: the manifest, its artifacts' files by the manifest's names, and every step's product.

    The files are in the cache and stay there until it is closed.
    """

    manifest: Manifest
    artifacts: dict[str, Path]
    products: dict[str, Product] = field(repr=False)


def build(recipe: Recipe, keys: dict[str, bytes], cache: Cache, progress: Progress) -> Built:
    """Build an image that trusts `keys` (signify public keys by file name), every step from the cache if it is there.

    Raises:
        ImageError: this machine cannot run the recipe's architecture.
        SourceUnavailableError: a mirror does not answer.
        RecipeError: the recipe asks for what cannot be.
        BudgetError: the image is larger than it may be.
        CommandError: a tool failed.
    """
    if os.geteuid() != 0:
        raise ImageError("building an image needs root (owners, permissions, a chroot); run it with sudo")
    with cache.scratch() as scratch:
        architecture.check(recipe.architecture, recipe.kernel.package, scratch)
    archives = tuple(read_archive(path, recipe.architecture) for path in recipe.container_images)
    mirrors = timed(progress, "mirrors", lambda: (probe(recipe.sources), False))
    created = max(mirror.newest for mirror in mirrors)
    # Each step begins when what its inputs call for is there; what does not wait for each other runs side by side.
    with Graph(cache, progress) as graph:
        base = graph.step(bootstrap.STEP, lambda: bootstrap_inputs(recipe, mirrors, created))
        compiled = (
            graph.step(drivers.STEP, lambda: drivers_inputs(recipe, mirrors, created)) if recipe.drivers else None
        )
        tree = graph.step(
            configure.STEP, lambda: configure_inputs(recipe, base(), created, archives, compiled and compiled())
        )
        system = graph.step(kernel.STEP, lambda: kernel.Inputs(tree(), recipe.modules.root))
        packed = graph.step(root.STEP, lambda: root.Inputs(system(), recipe.profile, created))
        early = graph.step(initrd.STEP, lambda: initrd_inputs(recipe, tree(), system(), keys))
        described = graph.step(
            manifest.STEP, lambda: manifest_inputs(recipe, system(), packed(), early(), keys, created, archives)
        )
    return Built(
        manifest=read_manifest((described() / "manifest.json").read_bytes()),
        artifacts={
            "kernel": system() / "vmlinuz",
            "initrd": early() / "initrd.img",
            "root": packed() / "root.squashfs",
            "packages": described() / "packages.json",
        },
        products=graph.products,
    )


def publish(built: Built, key: SigningKey, keys: dict[str, bytes], into: Store, progress: Progress) -> str:
    """Sign a built image and put it into the store; returns its digest. The store is touched here and nowhere else.

    Raises:
        UnknownSignerError: the image's own initrd would not believe `key`.
        StoreError: the store cannot take it; it is as it was.
    """
    path = built.products[manifest.STEP.name] / "manifest.json"
    signature: bytes = timed(progress, "sign", lambda: (sign.sign(path, key, keys), False))
    digest: str = timed(progress, "store", lambda: (store.store(into, path, signature, built.artifacts), False))
    return digest


def timed(progress: Progress, name: str, work: Callable[[], tuple[Any, bool]]) -> Any:
    """Do one piece of work, which says whether it was cached, and tell of it and of its time."""
    progress.begin(name)
    start = time.monotonic()
    result, cached = work()
    progress.end(name, time.monotonic() - start, cached=cached)
    return result


def bootstrap_inputs(recipe: Recipe, mirrors: tuple[Mirror, ...], created: int) -> bootstrap.Inputs:
    """What is installed: the recipe's packages and its kernel."""
    packages = tuple(sorted({*recipe.packages, recipe.kernel.package}))
    return bootstrap.Inputs(recipe.suite, recipe.architecture, mirrors, packages, created)


def drivers_inputs(recipe: Recipe, mirrors: tuple[Mirror, ...], created: int) -> drivers.Inputs:
    """What is compiled: the recipe's drivers, for its kernel."""
    merged = tuple(name for name in recipe.packages if name == "usr-is-merged")
    kernel_package = recipe.kernel.package
    return drivers.Inputs(recipe.suite, recipe.architecture, mirrors, kernel_package, recipe.drivers, merged, created)


def configure_inputs(
    recipe: Recipe, base: Product, created: int, archives: tuple[Archive, ...], compiled: Product | None = None
) -> configure.Inputs:
    """What the tree becomes: our own units and files, then the recipe's."""
    node = read_folder(NODE / "root")
    if recipe.join:
        node += agent_files()
    if archives:
        node += read_folder(NODE / "containers")
    return configure.Inputs(
        base=base,
        node=node,
        node_units=installable(node),
        entries=recipe.entries(),
        units=recipe.units,
        remove=recipe.remove,
        created=created,
        archives=archives,
        drivers=compiled,
    )


def installable(node: tuple[Any, ...]) -> tuple[str, ...]:
    """The units among the node's files that say what they are enabled for."""
    folder = "/systemd/system/"
    return tuple(Path(entry.path).name for entry in node if folder in entry.path and b"\n[Install]\n" in entry.content)


def initrd_inputs(recipe: Recipe, tree: Product, system: Product, keys: dict[str, bytes]) -> initrd.Inputs:
    """What starts first: the recipe's modules, and the keys that it trusts."""
    return initrd.Inputs(tree, system, recipe.modules.initrd, tuple(sorted(keys.items())))


def manifest_inputs(
    recipe: Recipe,
    system: Product,
    packed: Product,
    early: Product,
    keys: dict[str, bytes],
    created: int,
    archives: tuple[Archive, ...],
) -> manifest.Inputs:
    """What the image is described by."""
    identity = recipe.identity(tuple(step.identity() for step in STEPS), tuple(keys[name] for name in sorted(keys)))
    return manifest.Inputs(
        kernel=system,
        root=packed,
        initrd=early,
        name=recipe.name,
        distribution=recipe.distribution,
        suite=recipe.suite,
        architecture=recipe.architecture,
        recipe=identity,
        epoch=recipe.epoch,
        created=created,
        arguments=recipe.kernel.arguments,
        budget_mib=recipe.budget_mib,
        containers=tuple(image for archive in archives for image in archive.images),
    )
