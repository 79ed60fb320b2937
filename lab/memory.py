"""How much memory machines want for an image, and what becomes of it: by their initrd's rule, as the gate *memory*."""

from collections.abc import Iterator
from functools import cache

from images.build.gates import budget

SHOWN_GIB = (2, 16, 2048)
PARTS = ("image", "system", "overlay", "store", "kubelet", "eviction", "left")
_MOST_MIB = 2**22
_ROUNDED = 32
"""Within so many MiB the parts, each rounded down, may make one MiB more too little again."""


@cache
def least_mib(image: budget.Image) -> int:
    """The least memory of a machine (MiB, as installed) from which on the gate *memory* lets it boot."""
    too_little, enough = 0, _MOST_MIB
    while enough - too_little > 1:
        middle = (too_little + enough) // 2
        if budget.too_little(image, middle):
            too_little = middle
        else:
            enough = middle
    within = range(enough, enough + _ROUNDED)
    return next((mib + 1 for mib in reversed(within) if budget.too_little(image, mib)), enough)


@cache
def row(image: budget.Image, gib: int) -> str:
    """What becomes of the memory of a machine of `gib`, as it is installed: a line of a table, MiB."""
    installed = gib * 1024
    parts = budget.divided(image, installed * budget.COUNTED_PERCENT // 100)
    left = f"{parts['left']:,}" if not budget.too_little(image, installed) else f"**{parts['left']:,}**: too little"
    cells = [f"{parts[name]:,}" for name in PARTS[:-1]]
    return f"| {gib:,} GiB | `{image.name}` | {' | '.join((*cells, left))} |"


def rows(images: list[budget.Image]) -> Iterator[str]:
    """A table of several images, for each size of a machine."""
    yield f"| memory | | {' | '.join(PARTS)} |"
    yield f"|{'---|' * (len(PARTS) + 2)}"
    for gib in SHOWN_GIB:
        yield from (row(image, gib) for image in images)
