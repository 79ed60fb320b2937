"""What was made, counted and weighed: the manifest, the package list, the budget."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from images.artifact.manifest import Artifacts, ContainerImage, Manifest
from images.artifact.measure import measure
from images.build.context import Context
from images.build.documents import provenance
from images.build.gates import budget
from images.build.step import Product, Products, Say, Step
from images.build.steps import documents, uki
from images.build.steps import initrd as early
from images.build.steps import root as packed
from images.formats import debian
from images.formats.debian import Identity
from images.values.finding import BudgetError
from images.values.types import Architecture, RootFormat

VERSION = 3
MIB = 1024 * 1024

UNPACKED = 4
"""How much larger than its file a kernel or an initrd is in memory, at most: packed and unpacked are there at once."""
MARGIN_MIB = 256
"""The kernel's own tables, systemd and its services, page cache, and the overlay that takes what the machine writes."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Products to describe, and what the recipe says about the image as a whole."""

    kernel: Product
    root: Product
    initrd: Product
    name: str
    distribution: str
    suite: str
    architecture: Architecture
    recipe: str
    epoch: int
    created: int
    arguments: tuple[str, ...]
    budget_mib: int
    containers: tuple[ContainerImage, ...] = ()
    root_format: RootFormat = "squashfs"
    uki: Product | None = None
    machine_memory_mib: int | None = None
    join: bool = False
    documents: Product | None = None


def manifest(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/manifest.json` (canonical, unsigned), `out/packages.json`, and `out/provenance` with documents.

    Raises:
        BudgetError: too large, or too much for the machines' memory; with the ten largest contributors.
    """
    tree = inputs.kernel / "root"
    packages = debian.installed((tree / "var/lib/dpkg/status").read_text(encoding="utf-8"))
    (out / "packages.json").write_bytes(packages_json(package.identity for package in packages))
    kernel = measure(inputs.kernel / "vmlinuz")
    initrd = measure(inputs.initrd / early.IMAGE)
    root = measure(inputs.root / packed.IMAGE, chunks=True)
    size = kernel.size + initrd.size + root.size
    containers = sum(image.size for image in inputs.containers)
    memory = ram_mib(kernel.size, initrd.size, root.size, containers)
    say(f"{size / MIB:.1f} of {inputs.budget_mib} MiB")
    image = budget.Image(inputs.name, root.size, containers, inputs.join)
    findings = [
        *budget.budget(inputs.name, size, inputs.budget_mib, tree),
        *budget.memory(image, inputs.machine_memory_mib, tree),
    ]
    if findings:
        raise BudgetError(findings)
    artifacts = Artifacts(
        kernel=kernel,
        initrd=initrd,
        root=root,
        packages=measure(out / "packages.json"),
        uki=measure(inputs.uki / uki.IMAGE) if inputs.uki else None,
    )
    value = _manifest(inputs, with_documents(artifacts, inputs, out), memory)
    (out / "manifest.json").write_bytes(value.to_bytes())


def _manifest(inputs: Inputs, artifacts: Artifacts, memory_mib: int) -> Manifest:
    return Manifest(
        name=inputs.name,
        distribution=inputs.distribution,
        suite=inputs.suite,
        architecture=inputs.architecture,
        recipe=inputs.recipe,
        epoch=inputs.epoch,
        created=inputs.created,
        kernel_version=(inputs.kernel / "version").read_text(encoding="ascii").strip(),
        kernel_arguments=inputs.arguments,
        ram_mib=memory_mib,
        artifacts=artifacts,
        container_images=inputs.containers,
        root_format=inputs.root_format,
    )


def with_documents(known: Artifacts, inputs: Inputs, out: Path) -> Artifacts:
    """The artifacts with the documents about them; the provenance, which is about all others, is written here."""
    if inputs.documents is None:
        return known
    described = {name: measure(path) for name, path in documents.artifacts(inputs.documents).items()}
    predicate = json.loads((inputs.documents / "predicate.json").read_bytes())
    (out / "provenance").write_bytes(provenance.statement(dict(known) | described, predicate))
    return known.model_copy(update=described | {"provenance": measure(out / "provenance")})


def ram_mib(kernel: int, initrd: int, root: int, containers: int = 0) -> int:
    """The least memory of a machine for artifacts of these sizes (bytes), MiB.

    The packed root stays in memory; kernel and initrd are there packed and unpacked when the machine starts;
    container images are in the root, and once more as containerd keeps them.
    """
    return -(-(root + containers + UNPACKED * (kernel + initrd)) // MIB) + MARGIN_MIB


def packages_json(packages: Iterable[Identity]) -> bytes:
    """The package list as it is stored: a line for each package, so that two lists can be compared by eye."""
    return ("[\n" + ",\n".join(json.dumps(package) for package in packages) + "\n]\n").encode()


def _inputs(context: Context, products: Products) -> Inputs:
    recipe = context.recipe
    return Inputs(
        kernel=products["kernel"],
        root=products["root"],
        initrd=products["initrd"],
        name=recipe.name,
        distribution=recipe.distribution,
        suite=recipe.suite,
        architecture=recipe.architecture,
        recipe=context.identity,
        epoch=recipe.epoch,
        created=context.created,
        arguments=recipe.kernel.arguments,
        budget_mib=recipe.budget_mib,
        root_format=recipe.root_format,
        uki=products.get("uki"),
        machine_memory_mib=recipe.machine_memory_mib,
        join=recipe.join,
        containers=context.containers,
        documents=products["documents"],
    )


STEP = Step(
    "manifest",
    VERSION,
    manifest,
    outputs=("manifest.json", "packages.json"),
    inputs=_inputs,
    data=(budget.RULE,),
    needs=("kernel", "root", "initrd", "uki", "documents", "gates"),  # what a gate finds is said before a budget
    artifacts={"packages": "packages.json", "provenance": "provenance"},
)
