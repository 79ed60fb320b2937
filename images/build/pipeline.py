"""The build: steps that read like the recipe, from package mirrors to an image that can be signed."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from images.artifact.manifest import Manifest, read_manifest
from images.artifact.signing import SigningKey
from images.build import architecture
from images.build.cache import Cache
from images.build.containers import read as read_archive
from images.build.graph import Graph, Progress
from images.build.plan import Plan
from images.build.secureboot import SecureBootKey
from images.build.sources import probe
from images.build.step import Product
from images.build.steps import (
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
from images.errors import ImageError
from images.recipe.pinning import lock_of
from images.recipe.recipe import Recipe
from images.store.store import Store


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
    plan = Plan(recipe, keys, mirrors, archives, lock, cache.packages)
    # Each step begins when what its inputs call for is there; what does not wait for each other runs side by side.
    with Graph(cache, progress) as graph:
        base = graph.step(bootstrap.STEP, plan.bootstrap)
        compiled = graph.step(drivers.STEP, plan.drivers) if recipe.drivers else None
        tree = graph.step(configure.STEP, lambda: plan.configure(base(), compiled and compiled()))
        system = graph.step(kernel.STEP, lambda: plan.kernel(tree()))
        packed = graph.step(root.STEP, lambda: plan.root(system()))
        gathered = graph.step(initrd.GATHER, lambda: plan.gather(tree(), system()))
        early = graph.step(initrd.STEP, lambda: plan.initrd(gathered()))
        unified = graph.step(uki.STEP, lambda: plan.uki(tree(), system(), early(), secure_boot)) if recipe.uki else None
        about = graph.step(documents.STEP, lambda: plan.documents(base(), tree(), system()))
        checked = graph.step(gates.STEP, lambda: plan.gates(base(), tree(), system(), early()))

        def all_that_is_described() -> manifest.Inputs:
            checked()  # what a gate finds is said before a budget
            return plan.manifest(system(), packed(), early(), unified and unified(), about())

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
