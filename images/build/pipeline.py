"""The build: from package mirrors to an image that can be signed, step by step, and into the store.

Each step is a file of `images/build/steps/` that says what it needs (docs/images.md draws the graph):

    bootstrap, drivers → configure → kernel → root, documents, gather → initrd → uki, gates → manifest
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from images.artifact.manifest import Manifest, read_manifest
from images.artifact.signing import SigningKey, read_public_key, verify
from images.build import architecture
from images.build.cache import Cache
from images.build.containers import read as read_archive
from images.build.context import Context
from images.build.graph import Graph, Progress
from images.build.plan import plan
from images.build.secureboot import SecureBootKey
from images.build.sources import probe
from images.build.step import I, Product, Step
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
    steps, context = plan(Context(recipe, keys, mirrors, archives, lock, cache.packages, secure_boot))
    with Graph(cache, progress) as graph:
        start(graph, steps, context)
    products = graph.products
    files = {
        name: products[step.name] / file
        for step in steps
        for name, file in step.artifacts.items()
        if (products[step.name] / file).is_file()
    }
    return Built(read_manifest((products["manifest"] / "manifest.json").read_bytes()), files, products)


def start(graph: Graph, steps: Iterable[Step[Any]], context: Context) -> None:
    """Begin the steps, which come after those that they need: each runs as soon as their products are there."""
    waiting: dict[str, Callable[[], Product]] = {}
    for step in steps:
        waiting[step.name] = graph.step(step, _inputs(step, context, waiting), step.tool_versions(context))


def _inputs(step: Step[I], context: Context, waiting: Mapping[str, Callable[[], Product]]) -> Callable[[], I]:
    """What waits for the products that a step needs, and makes its inputs of them."""
    needs = {name: waiting[name] for name in step.needs if name in waiting}
    return lambda: step.inputs(context, {name: wait() for name, wait in needs.items()})


def publish(built: Built, key: SigningKey, keys: dict[str, bytes], into: Store, progress: Progress) -> str:
    """Sign a built image and put it into the store; returns its digest. The store is touched here and nowhere else.

    Raises:
        UnknownSignerError: the image's own initrd would not believe `key`.
        StoreError: the store cannot take it; it is as it was.
    """
    message = (built.products["manifest"] / "manifest.json").read_bytes()
    signature: bytes = timed(progress, "sign", lambda: (sign(message, key, keys), False))
    digest: str = timed(progress, "store", lambda: (into.add_image(message, signature, built.artifacts), False))
    return digest


def sign(manifest: bytes, key: SigningKey, baked: Mapping[str, bytes]) -> bytes:
    """The signature of a manifest, in signify's form, checked with the keys that the image's own initrd trusts.

    Raises:
        UnknownSignerError: a machine that boots this initrd would refuse the image.
    """
    signature = key.sign(manifest)
    verify(manifest, signature, [read_public_key(content) for content in baked.values()])
    return signature


def timed(progress: Progress, name: str, work: Callable[[], tuple[Any, bool]]) -> Any:
    """Do one piece of work, which says whether it was cached, and tell of it and of its time."""
    progress.begin(name)
    start = time.monotonic()
    result, cached = work()
    progress.end(name, time.monotonic() - start, cached=cached)
    return result
