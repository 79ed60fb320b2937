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
from images.documents.sbom import Subject
from images.errors import ImageError
from images.graph import Graph, Progress
from images.locking import Lock
from images.manifest import Manifest, read_manifest
from images.node.files import agent_files, health_files
from images.overlay import read_folder
from images.pinning import lock_of
from images.recipe import Recipe
from images.secureboot import SecureBootKey
from images.signing import SigningKey
from images.sources import Mirror, probe
from images.step import Product, Step, by_content
from images.steps import (
    bootstrap,
    configure,
    documents,
    drivers,
    gates,
    initrd,
    kernel,
    manifest,
    root,
    sign,
    store,
    uki,
)
from images.store import Store

NODE = Path(str(files("images") / "node"))
STEPS: tuple[Step[Any], ...] = (
    *(bootstrap.STEP, drivers.STEP, configure.STEP, kernel.STEP, documents.STEP, root.STEP),
    *(initrd.GATHER, initrd.STEP, uki.STEP, gates.STEP, manifest.STEP),
)
"""The steps whose products are cached."""


@dataclass(frozen=True, slots=True)
class Built:
    """A build's end: the manifest, its artifacts' files by the manifest's names, and every step's product.

    The files are in the cache and stay there until it is closed.
    """

    manifest: Manifest
    artifacts: dict[str, Path]
    products: dict[str, Product] = field(repr=False)


def build(
    recipe: Recipe,
    keys: dict[str, bytes],
    cache: Cache,
    progress: Progress,
    secure_boot: SecureBootKey | None = None,
) -> Built:
    """Build an image that trusts `keys` (signify public keys by file name), every step from the cache if it is there.

    `secure_boot` signs the unified kernel image, where the recipe asks for one.

    Raises:
        ImageError: this machine cannot run the recipe's architecture.
        SourceUnavailableError: a mirror does not answer.
        RecipeError: the recipe asks for what cannot be. LockError: its lock cannot be kept.
        GateError: what was built must not be booted; BudgetError: it is too large.
        CommandError: a tool failed.
    """
    if os.geteuid() != 0:
        raise ImageError("building an image needs root (owners, permissions, a chroot); run it with sudo")
    with cache.scratch() as scratch:
        architecture.check(recipe.architecture, recipe.kernel.package, scratch)
    lock = lock_of(recipe)
    archives = tuple(read_archive(path, recipe.architecture) for path in recipe.container_images)
    mirrors = timed(progress, "mirrors", lambda: (probe(recipe.sources), False))
    created = lock.created if lock else max(mirror.newest for mirror in mirrors)
    # Each step begins when what its inputs call for is there; what does not wait for each other runs side by side.
    with Graph(cache, progress) as graph:
        base = graph.step(bootstrap.STEP, lambda: bootstrap_inputs(recipe, mirrors, created, cache.packages, lock))
        compiled = (
            graph.step(drivers.STEP, lambda: drivers_inputs(recipe, mirrors, created, cache.packages, lock))
            if recipe.drivers
            else None
        )
        tree = graph.step(
            configure.STEP, lambda: configure_inputs(recipe, base(), created, archives, compiled and compiled())
        )
        system = graph.step(kernel.STEP, lambda: kernel_inputs(recipe, tree()))
        packed = graph.step(root.STEP, lambda: root.Inputs(system(), recipe.profile, created, recipe.root_format))
        gathered = graph.step(initrd.GATHER, lambda: initrd_sources(recipe, tree(), system(), keys))
        early = graph.step(initrd.STEP, lambda: initrd.Inputs(by_content(gathered(), initrd.GATHERED)))
        unified = (
            graph.step(uki.STEP, lambda: uki_inputs(recipe, tree(), system(), early(), created, secure_boot))
            if recipe.uki
            else None
        )
        about = graph.step(
            documents.STEP,
            lambda: documents_inputs(recipe, mirrors, base(), tree(), system(), keys, created, archives),
        )
        checked = graph.step(gates.STEP, lambda: gates_inputs(recipe, mirrors, base(), tree(), system(), early()))

        def all_that_is_described() -> manifest.Inputs:
            checked()  # what a gate finds is said before a budget
            pe = unified() if unified else None
            return manifest_inputs(recipe, system(), packed(), early(), pe, keys, created, archives, about())

        described = graph.step(manifest.STEP, all_that_is_described)
    return Built(
        manifest=read_manifest((described() / "manifest.json").read_bytes()),
        artifacts={
            "kernel": system() / "vmlinuz",
            "initrd": early() / initrd.IMAGE,
            "root": packed() / root.IMAGE,
            "packages": described() / "packages.json",
            "provenance": described() / "provenance",
            **documents.artifacts(about()),
        }
        | ({"uki": unified() / uki.IMAGE} if unified else {}),
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


def bootstrap_inputs(
    recipe: Recipe, mirrors: tuple[Mirror, ...], created: int, archives: Path | None = None, lock: Lock | None = None
) -> bootstrap.Inputs:
    """What is installed: the recipe's packages and its kernel."""
    stub = {uki.PACKAGE} if recipe.uki else set()
    packages = tuple(sorted({*recipe.installs(), *stub}))
    return bootstrap.Inputs(recipe.suite, recipe.architecture, mirrors, packages, created, archives, lock)


def drivers_inputs(
    recipe: Recipe, mirrors: tuple[Mirror, ...], created: int, archives: Path | None = None, lock: Lock | None = None
) -> drivers.Inputs:
    """What is compiled: the recipe's drivers, for its kernel."""
    merged = tuple(name for name in recipe.packages if name == "usr-is-merged")
    wanted = (recipe.kernel.package, recipe.drivers, merged)
    locked = lock.of_build() if lock else None
    patches = tuple((path.name, path.read_bytes()) for path in recipe.driver_patches)
    return drivers.Inputs(recipe.suite, recipe.architecture, mirrors, *wanted, created, patches, archives, locked)


def configure_inputs(
    recipe: Recipe, base: Product, created: int, archives: tuple[Archive, ...], compiled: Product | None = None
) -> configure.Inputs:
    """What the tree becomes: our own units and files, then the recipe's."""
    node = read_folder(NODE / "root")
    if recipe.join:
        node += agent_files() + health_files()
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


def kernel_inputs(recipe: Recipe, tree: Product) -> kernel.Inputs:
    """What stays of the tree: no EFI stub, which is in the unified kernel image."""
    return kernel.Inputs(tree, recipe.modules.root, (uki.STUBS,) if recipe.uki else ())


def uki_inputs(
    recipe: Recipe, tree: Product, system: Product, early: Product, created: int, signer: SecureBootKey | None
) -> uki.Inputs:
    """What one file is made of."""
    return uki.Inputs(tree, system, early, recipe.architecture, recipe.kernel.arguments, created, signer)


def initrd_sources(recipe: Recipe, tree: Product, system: Product, keys: dict[str, bytes]) -> initrd.Sources:
    """What starts first: the recipe's modules, and the keys that it trusts."""
    return initrd.Sources(tree, system, recipe.modules.initrd, tuple(sorted(keys.items())), recipe.root_format)


def gates_inputs(
    recipe: Recipe, mirrors: tuple[Mirror, ...], base: Product, tree: Product, system: Product, early: Product
) -> gates.Inputs:
    """What is checked, and what the recipe wants of it."""
    releases = tuple(digest for mirror in mirrors for digest in mirror.releases)
    return gates.Inputs(base, tree, system, early, gates.wanted(recipe, releases))


def manifest_inputs(
    recipe: Recipe,
    system: Product,
    packed: Product,
    early: Product,
    unified: Product | None,
    keys: dict[str, bytes],
    created: int,
    archives: tuple[Archive, ...],
    about: Product,
) -> manifest.Inputs:
    """What the image is described by."""
    return manifest.Inputs(
        kernel=system,
        root=packed,
        initrd=early,
        name=recipe.name,
        distribution=recipe.distribution,
        suite=recipe.suite,
        architecture=recipe.architecture,
        recipe=identity_of(recipe, keys),
        epoch=recipe.epoch,
        created=created,
        arguments=recipe.kernel.arguments,
        budget_mib=recipe.budget_mib,
        root_format=recipe.root_format,
        uki=unified,
        machine_memory_mib=recipe.machine_memory_mib,
        containers=tuple(image for archive in archives for image in archive.images),
        documents=about,
    )


def documents_inputs(
    recipe: Recipe,
    mirrors: tuple[Mirror, ...],
    base: Product,
    tree: Product,
    system: Product,
    keys: dict[str, bytes],
    created: int,
    archives: tuple[Archive, ...],
) -> documents.Inputs:
    """What the documents tell of."""
    return documents.Inputs(
        base=base,
        tree=tree,
        kernel=system,
        subject=Subject(
            name=recipe.name,
            recipe=identity_of(recipe, keys),
            distribution=recipe.distribution,
            suite=recipe.suite,
            architecture=recipe.architecture,
            created=created,
        ),
        recipe=recipe.said(),
        steps=tuple((step.name, step.version, step.identity()) for step in STEPS),
        releases=tuple(
            ("file:" if mirror.url.startswith("file:") else mirror.url, suite, release)
            for mirror in (mirrors if recipe.lock is None else ())  # the lock says which packages, wherever they lie
            for suite, release in zip(mirror.suites, mirror.releases, strict=True)
        ),
        containers=tuple(image for archive in archives for image in archive.images),
    )


def identity_of(recipe: Recipe, keys: dict[str, bytes]) -> str:
    """The recipe's identity: all that it says, all steps, the keys that are baked in."""
    return recipe.identity(tuple(step.identity() for step in STEPS), tuple(keys[name] for name in sorted(keys)))
