"""What our initrd is made of, by `images.build.initrd`: the tree's own tools and kernel modules, and trusted keys."""

from dataclasses import dataclass
from pathlib import Path

from images.build import initrd as builder
from images.build.context import Context
from images.build.dracut import ARCHIVE, FOLDER
from images.build.step import Product, Products, Say, Step
from images.values.types import RootFormat

VERSION = 3

GATHERED = "initrd.cpio"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The configured tree (with all modules), its kernel, the modules wanted early, public keys by file name."""

    tree: Product
    kernel: Product
    modules: tuple[str, ...]
    keys: tuple[tuple[str, bytes], ...]
    root_format: RootFormat = "squashfs"
    debug: bool = False
    dracut: Product | None = None
    """What dracut made, where the recipe wants its initrd."""


def gather(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/initrd.cpio`; `out/keys` holds the keys that went in.

    Raises:
        RecipeError: a tool, module or key that the initrd needs is not there.
    """
    keys = out / "keys"
    keys.mkdir()
    for name, content in inputs.keys:
        (keys / name).write_bytes(content)
    version = (inputs.kernel / "version").read_text(encoding="ascii").strip()
    gathered = builder.gather(
        inputs.tree / "root",
        version,
        inputs.modules,
        sorted(keys.iterdir()),
        out / GATHERED,
        root_format=inputs.root_format,
        debug=inputs.debug,
        dracut=inputs.dracut / ARCHIVE if inputs.dracut else None,
    )
    say(f"{len(gathered.modules)} modules, {gathered.size / 2**20:.1f} MiB unpacked")
    if gathered.missing_firmware:
        say(f"firmware that the root does not have: {', '.join(gathered.missing_firmware)}")


def _inputs(context: Context, products: Products) -> Inputs:
    keys, recipe = tuple(sorted(context.keys.items())), context.recipe
    shell = "initrd-shell" in recipe.debug
    made = products["configure"], products["kernel"]
    return Inputs(*made, recipe.modules.initrd, keys, recipe.root_format, shell, products.get("dracut"))


STEP = Step(
    "gather",
    VERSION,
    gather,
    outputs=(GATHERED,),
    inputs=_inputs,
    needs=("configure", "kernel", "dracut"),
    data=(builder.STAGE, FOLDER),
)
