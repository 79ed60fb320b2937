"""Which classes of machines an image is built for: those of the site's inventory, for the gate *memory*."""

import difflib
from collections.abc import Sequence

import click

from images.artifact.manifest import Manifest
from images.build.gates import budget
from images.errors import NotFoundError
from images.recipe.recipe import Recipe
from images.store.store import Store
from images.values.finding import BudgetError
from images.values.strict import FaultsError
from images.values.types import Architecture
from netboot.cli import fit
from netboot.cli.paths import Paths
from netboot.machines.classes import Class
from netboot.machines.fit import without_drivers

classes_option = click.option(
    "--class",
    "classes",
    multiple=True,
    help="A class of the inventory that is to boot it.  [default: each of its architecture]",
)


def chosen_classes(paths: Paths, architecture: Architecture, named: Sequence[str]) -> tuple[Class, ...]:
    """Those named, else all of that architecture.

    An inventory with faults is said and passed over, unless a class of it was named.

    Raises:
        NotFoundError: a class that is named is not declared, or of another architecture.
        images.values.strict.FaultsError: one is named, and the inventory has faults.
    """
    try:
        inventory = paths.declared()
        declared = inventory.classes if inventory is not None else ()
    except FaultsError:
        if named:
            raise
        click.echo("the inventory has faults (`netboot config check`): no class is looked at", err=True)
        declared = ()
    known = {one.name: one for one in declared}
    if named:
        return tuple(_named(known, name, architecture) for name in named)
    return tuple(one for one in declared if one.architecture == architecture)


def require_memory(manifest: Manifest, recipe: Recipe, classes: Sequence[Class]) -> None:
    """Raises BudgetError: a class of machines has not the memory for it."""
    containers = sum(one.size for one in manifest.container_images)
    image = budget.Image(manifest.name, manifest.artifacts.root.size, containers, recipe.join)
    memory = {one.name: one.memory_mib for one in classes if one.memory_mib is not None}
    findings = budget.memory_of_classes(image, memory)
    if findings:
        raise BudgetError(findings)


def without_cards(manifest: Manifest, store: Store, classes: Sequence[Class]) -> tuple[str, ...]:
    """Warnings, told on stderr: of classes with network cards for which the image, which is stored, has no driver."""
    found = fit.candidate(store, manifest)
    warnings = tuple(f"class {one.name}: {words}" for one in classes for words in without_drivers(one, found))
    for warning in warnings:
        click.secho(f"warning: {warning}", fg="yellow", err=True)
    return warnings


def _named(known: dict[str, Class], name: str, architecture: Architecture) -> Class:
    found = known.get(name)
    if found is None:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"declared classes: {', '.join(sorted(known)) or 'none'}"
        raise NotFoundError(f"no class is named {name!r}; {hint}")
    if found.architecture != architecture:
        raise NotFoundError(f"class {name!r} is {found.architecture}, and the image {architecture}: leave it out")
    return found
