"""Our initrd: built by `images.initrd` from the tree's own kernel modules and the public keys that machines trust."""
from dataclasses import dataclass
from pathlib import Path

from images.step import Product, Say, Step

VERSION = 1


@dataclass(frozen=True, slots=True)
class Inputs:
    """The configured tree with all modules, the kernel, and what the recipe wants early."""

    tree: Product
    kernel: Product
    modules: tuple[str, ...]
    keys: tuple[tuple[str, bytes], ...]
    profile: str


def initrd(inputs: Inputs, out: Path, say: Say) -> None:
    (out / "initrd.img").write_bytes(b"no initrd yet")


STEP = Step("initrd", VERSION, initrd, outputs=("initrd.img",))
