"""The documents about an image, from its finished tree: kernel configuration, listing, bill of materials, licences.

The provenance is finished by the manifest step, which alone knows the digests of all that it is about.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from images.artifact.manifest import ContainerImage
from images.build import bytecode
from images.build.context import Context
from images.build.documents import licences, listing, parts, provenance, sbom
from images.build.documents.parts import Part, Source
from images.build.documents.provenance import Release
from images.build.documents.sbom import Subject
from images.build.dracut import COPYRIGHTS, PACKAGES
from images.build.initrd import stage_files
from images.build.node_files import entries_of
from images.build.step import Product, Products, Say, Step
from images.build.steps.drivers import COMPILED
from images.formats import debian
from images.values.digests import canonical

VERSION = 3
NAMES = ("config", "files", "sbom", "licences")
"""Artifacts that this step writes, each as a file of that name; `config` only where the kernel's package has one."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The installed tree (with apt's lists), the configured one (with /boot), the final one; and what they are of."""

    base: Product
    tree: Product
    kernel: Product
    subject: Subject
    recipe: Mapping[str, Any]
    """The recipe as it was after merging, as JSON has it."""
    steps: tuple[tuple[str, int, str], ...]
    """Name, version and identity of each step of the build."""
    tools: Mapping[str, str]
    """What each tool of the build says of its version."""
    releases: tuple[Release, ...]
    containers: tuple[ContainerImage, ...] = ()
    drivers: Product | None = None
    patches: tuple[tuple[str, bytes], ...] = ()
    """Of the drivers' sources, by file name."""
    node: tuple[str, ...] = ()
    """Paths of what is ours in the root."""
    entries: tuple[str, ...] = ()
    """Paths of the recipe's own files and overlays."""
    stage: tuple[parts.File, ...] = ()
    """What is ours in the initrd."""
    dracut: Product | None = None
    """What dracut made the initrd of, where it did."""


def documents(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/files`, `out/sbom`, `out/licences`, `out/predicate.json`, and `out/config` where there is one."""
    root = inputs.kernel / "root"
    version = (inputs.kernel / "version").read_text(encoding="ascii").strip()
    config = inputs.tree / f"root/boot/config-{version}"
    if config.is_file():
        shutil.copyfile(config, out / "config")
    say(f"{listing.write(root, out / 'files')} paths listed")
    packages = debian.installed((root / "var/lib/dpkg/status").read_text(encoding="utf-8"))
    origins = debian.origins(inputs.base / "root/var/lib/apt/lists", frozenset(p.identity for p in packages))
    licence_of_each = licences.read(root, packages)
    if inputs.dracut:
        early = parts.only_in(json.loads((inputs.dracut / PACKAGES).read_bytes()), packages)
        packages += tuple(source.package for source in early)
        origins |= {source.package.identity: source.origins for source in early}
        licence_of_each += licences.read(inputs.dracut / COPYRIGHTS, tuple(source.package for source in early))
    identities = frozenset(package.identity for package in packages)
    (out / "licences").write_bytes(licences.listing(licence_of_each))
    by_package = {licence.package.identity: licence for licence in licence_of_each}
    others, compiled_by = _others(inputs)
    bill = sbom.sbom(inputs.subject, packages, origins, by_package, inputs.containers, others, inputs.tools)
    (out / "sbom").write_bytes(bill)
    dependencies = [
        *provenance.release_dependencies(inputs.releases),
        *provenance.package_dependencies(inputs.subject, packages, origins),
        *provenance.part_dependencies(inputs.subject, others, compiled_by),
    ]
    predicate = provenance.predicate(inputs.subject, inputs.recipe, inputs.steps, inputs.tools, dependencies)
    (out / "predicate.json").write_bytes(canonical(predicate))
    without = len(identities - origins.keys())
    say(f"{len(packages)} packages" + (f", {without} of them in none of apt's lists" if without else ""))


def _others(inputs: Inputs) -> tuple[tuple[Part, ...], tuple[Source, ...]]:
    """What is in the image and no package brought, and the packages of the root in which drivers were compiled."""
    root = inputs.kernel / "root"
    own = set(inputs.entries)  # of two with one path the recipe's is the one that stays
    node = (path for path in (*inputs.node, *bytecode.paths(root)) if path not in own)
    found = [
        Part("application", "netboot-node", parts.in_image(root, node)),
        Part("application", "netboot-initrd", inputs.stage),
        *(Part("file", file[0], (file,)) for file in parts.in_image(root, own)),
    ]
    found = [part for part in found if part.files]
    if inputs.drivers is None:
        return tuple(found), ()
    compiled = json.loads((inputs.drivers / COMPILED).read_bytes())
    return (*found, *parts.drivers(compiled, root, inputs.patches)), parts.sources(compiled)


def artifacts(product: Product) -> dict[str, Path]:
    """The artifacts that this step made, by the manifest's names."""
    return {name: product / name for name in NAMES if (product / name).is_file()}


def _inputs(context: Context, products: Products) -> Inputs:
    recipe = context.recipe
    return Inputs(
        base=products["bootstrap"],
        tree=products["configure"],
        kernel=products["kernel"],
        subject=Subject(
            name=recipe.name,
            recipe=context.identity,
            distribution=recipe.distribution,
            suite=recipe.suite,
            architecture=recipe.architecture,
            created=context.created,
        ),
        recipe=recipe.as_json(),
        steps=context.steps,
        tools=context.tools,
        releases=tuple(
            ("file:" if mirror.url.startswith("file:") else mirror.url, suite, release)
            for mirror in (context.mirrors if recipe.lock is None else ())  # a lock says which, wherever they lie
            for suite, release in zip(mirror.suites, mirror.releases, strict=True)
        ),
        containers=context.containers,
        drivers=products.get("drivers"),
        patches=tuple((path.name, path.read_bytes()) for path in recipe.driver_patches),
        node=tuple(
            entry.path
            for entry in entries_of(
                join=recipe.join, containers=bool(context.archives), login="console-login" in recipe.debug
            )
        ),
        entries=tuple(entry.path for entry in recipe.entries()),
        stage=stage_files(debug="initrd-shell" in recipe.debug, dracut=recipe.dracut is not None),
        dracut=products.get("dracut"),
    )


STEP = Step(
    "documents",
    VERSION,
    documents,
    outputs=("files", "sbom", "licences", "predicate.json"),
    inputs=_inputs,
    needs=("bootstrap", "drivers", "configure", "kernel", "dracut"),
    tools=lambda _: ("cyclonedx-python-lib",),
    artifacts={name: name for name in NAMES},
)
