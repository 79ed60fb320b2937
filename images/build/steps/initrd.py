"""zstd: what was gathered for our initrd becomes the file that firmware loads and the kernel unpacks.

Apart from *gather*, because it takes seconds: it is done again only where what was gathered is not what it was before,
and most changes of a tree are of no concern to the initrd.
"""

from dataclasses import dataclass
from pathlib import Path

from images.build.context import Context
from images.build.initrd import compress
from images.build.step import Product, Products, Say, Step, by_content
from images.build.steps import gather

VERSION = 3

IMAGE = "initrd.img"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was gathered (`images.build.step.by_content`)."""

    gathered: Product


def initrd(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/initrd.img`: what was gathered, compressed with zstd."""
    say("compressing")
    compress(inputs.gathered / gather.GATHERED, out / IMAGE)


def _inputs(_context: Context, products: Products) -> Inputs:
    return Inputs(by_content(products["gather"], gather.GATHERED))


STEP = Step(
    "initrd",
    VERSION,
    initrd,
    outputs=(IMAGE,),
    inputs=_inputs,
    needs=("gather",),
    tools=lambda _: ("zstd",),
    artifacts={"initrd": IMAGE},
)
