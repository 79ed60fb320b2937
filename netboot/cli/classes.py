"""Which classes of machines an image is built for: their memory for a gate, their network cards for a warning."""

import difflib
from collections.abc import Iterable, Sequence

import click

from images.errors import NotFoundError
from images.node.health.cards import ids_of
from images.values.strict import FaultsError
from images.values.types import Architecture
from netboot.cli.paths import Paths
from netboot.machines.classes import Class
from netboot.machines.inventory import load_inventory

classes_option = click.option(
    "--class",
    "classes",
    multiple=True,
    help="A class of the inventory that is to boot it.  [default: each of its architecture]",
)


def meant(paths: Paths, architecture: Architecture, named: Sequence[str]) -> list[Class]:
    """Those named, else all of that architecture.

    An inventory with faults is said and passed over, unless a class of it was named.

    Raises:
        NotFoundError: a class that is named is not declared, or of another architecture.
        images.values.strict.FaultsError: one is named, and the inventory has faults.
    """
    folder = paths.inventory
    try:
        declared = load_inventory(folder).classes if folder is not None else ()
    except FaultsError:
        if named:
            raise
        click.echo("the inventory has faults (`netboot config check`): no class is looked at", err=True)
        declared = ()
    known = {one.name: one for one in declared}
    return [_named(known, name, architecture) for name in named] or [
        one for one in declared if one.architecture == architecture
    ]


def memory_of(classes: Iterable[Class]) -> dict[str, int]:
    """MiB of memory by class; those that declare none are left out."""
    return {one.name: one.memory_mib for one in classes if one.memory_mib is not None}


def cards_of(classes: Iterable[Class]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Ids on the PCI bus by class and model of network card; models that nobody here knows are left out."""
    return {one.name: {nic.model: ids for nic in one.nics if (ids := ids_of(nic.model))} for one in classes}


def _named(known: dict[str, Class], name: str, architecture: Architecture) -> Class:
    found = known.get(name)
    if found is None:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"declared classes: {', '.join(sorted(known)) or 'none'}"
        raise NotFoundError(f"no class is named {name!r}; {hint}")
    if found.architecture != architecture:
        raise NotFoundError(f"class {name!r} is {found.architecture}, and the image {architecture}: leave it out")
    return found
