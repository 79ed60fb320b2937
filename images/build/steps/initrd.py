"""Our initrd, by `images.build.initrd`: the tree's own tools and kernel modules, and the keys that machines trust.

Two steps: *gather* reads the tree, quickly; *initrd* compresses, which takes seconds, and only where what was gathered
is not what it was before: most changes of a tree are of no concern to the initrd.
"""

from dataclasses import dataclass
from pathlib import Path

from images.build import initrd as builder
from images.build.step import Product, Say, Step
from images.formats import cpio, elf, modules
from images.values.types import RootFormat

VERSION = 2

GATHERED, IMAGE = "initrd.cpio", "initrd.img"


@dataclass(frozen=True, slots=True)
class Sources:
    """The configured tree (with all modules), its kernel, the modules wanted early, public keys by file name."""

    tree: Product
    kernel: Product
    modules: tuple[str, ...]
    keys: tuple[tuple[str, bytes], ...]
    root_format: RootFormat = "squashfs"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was gathered (`images.build.step.by_content`)."""

    gathered: Product


def gather(inputs: Sources, out: Path, say: Say) -> None:
    """Write `out/initrd.cpio`; `out/keys` holds the keys that went in.

    Raises:
        RecipeError: a tool, module or key that the initrd needs is not there.
    """
    keys = out / "keys"
    keys.mkdir()
    for name, content in inputs.keys:
        (keys / name).write_bytes(content)
    version = (inputs.kernel / "version").read_text(encoding="ascii").strip()
    made = builder.gather(
        inputs.tree / "root",
        version,
        inputs.modules,
        sorted(keys.iterdir()),
        out / GATHERED,
        root_format=inputs.root_format,
    )
    say(f"{len(made.modules)} modules, {made.size / 2**20:.1f} MiB unpacked")
    if made.missing_firmware:
        say(f"firmware that the root does not have: {', '.join(made.missing_firmware)}")


def initrd(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/initrd.img`."""
    say("compressing")
    builder.compress(inputs.gathered / GATHERED, out / IMAGE)


GATHER = Step(
    "gather",
    VERSION,
    gather,
    outputs=(GATHERED,),
    sources=(builder.STAGE, *(Path(str(module.__file__)) for module in (builder, cpio, elf, modules))),
)
STEP = Step("initrd", VERSION, initrd, outputs=(IMAGE,), sources=(Path(str(builder.__file__)),))
