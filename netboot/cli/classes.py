"""Which classes of machines an image is built for: those of the site's inventory, for the gate *memory*."""

import difflib
from collections.abc import Sequence

import click

from images.errors import NotFoundError
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


def memory_of(paths: Paths, architecture: Architecture, named: Sequence[str]) -> dict[str, int]:
    """MiB of memory by class: of those named, else of all of that architecture; those that declare none are left out.

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
        click.echo("the inventory has faults (`netboot config check`): no class's memory is looked at", err=True)
        declared = ()
    known = {one.name: one for one in declared}
    chosen = [_named(known, name, architecture) for name in named] or [
        one for one in declared if one.architecture == architecture
    ]
    return {one.name: one.memory_mib for one in chosen if one.memory_mib is not None}


def _named(known: dict[str, Class], name: str, architecture: Architecture) -> Class:
    found = known.get(name)
    if found is None:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"declared classes: {', '.join(sorted(known)) or 'none'}"
        raise NotFoundError(f"no class is named {name!r}; {hint}")
    if found.architecture != architecture:
        raise NotFoundError(f"class {name!r} is {found.architecture}, and the image {architecture}: leave it out")
    return found
