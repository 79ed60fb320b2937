"""Network cards of classes of machines for which an image has no driver, by the kernel's own aliases of the PCI bus."""

import fnmatch
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from images.build.initrd import ALWAYS
from images.build.step import Products
from images.formats import tree
from images.formats.modules import Tree

_REMEDY = "take the feature `server`, or name it in `modules` of the recipe (docs/recipes.md)"


def undriven(
    products: Products, modules: Sequence[str], cards: Mapping[str, Mapping[str, tuple[str, ...]]]
) -> tuple[str, ...]:
    """Warnings: of each model whose driver the image lacks, and of each class none of whose cards the initrd drives.

    No finding of a gate, for a class does not say by which card its machines boot.

    Args:
        products: of the whole build. modules: of the recipe's `modules.initrd`.
        cards: class → model → its ids on the PCI bus, `15b3:1021`.
    """
    if not any(cards.values()):
        return ()
    version = (products["kernel"] / "version").read_text(encoding="ascii").strip()
    whole, kept = (_modules(products[step] / "root", version) for step in ("configure", "kernel"))
    early = {*whole.builtin, *whole.order([*ALWAYS, *modules])}
    image = early | kept.paths.keys()
    return tuple(
        f"class {name}: {warning}"
        for name, models in sorted(cards.items())
        for warning in _of_class({model: _drivers(whole, ids) for model, ids in models.items()}, version, image, early)
    )


def _of_class(
    drivers: Mapping[str, frozenset[str]], version: str, image: Collection[str], early: Collection[str]
) -> Iterator[str]:
    for model, names in drivers.items():
        if not names:
            yield f"kernel {version} has no driver for its {model}; take the full kernel (`kernel.package`)"
        elif names.isdisjoint(image):
            yield f"the image leaves out {_listed(names)}, the driver of its {model}; {_REMEDY}"
    there = [names for names in drivers.values() if not names.isdisjoint(image)]
    if there and all(names.isdisjoint(early) for names in there):
        missing = _listed(frozenset().union(*there))
        yield f"the initrd has no driver of its network cards ({missing}): its machines get no address; {_REMEDY}"


def _drivers(known: Tree, ids: tuple[str, ...]) -> frozenset[str]:
    """Modules that claim a network controller (class 02) of one of these ids."""
    pairs = [id_.upper().split(":") for id_ in ids]
    names = [f"pci:v0000{vendor}d0000{device}sv00000000sd00000000bc02sc00i00" for vendor, device in pairs]
    return frozenset(
        target for pattern, target in known.aliases for name in names if fnmatch.fnmatchcase(name, pattern)
    )


def _listed(names: frozenset[str]) -> str:
    return " or ".join(sorted(names))


def _modules(root: Path, version: str) -> Tree:
    return Tree(tree.inside(root, f"/lib/modules/{version}/x").parent)
