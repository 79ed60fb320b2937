"""Our initrd, by `images.initrd`: the tree's own tools and kernel modules, and the keys that machines trust."""

from dataclasses import dataclass
from pathlib import Path

from images import cpio, elf, modules
from images import initrd as builder
from images.step import Product, Say, Step

VERSION = 1


@dataclass(frozen=True, slots=True)
class Inputs:
    """The configured tree (with all modules), its kernel, the modules wanted early, public keys by file name."""

    tree: Product
    kernel: Product
    modules: tuple[str, ...]
    keys: tuple[tuple[str, bytes], ...]


def initrd(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/initrd.img`; `out/keys` holds the keys that went in.

    Raises:
        RecipeError: a tool, module or key that the initrd needs is not there.
    """
    keys = out / "keys"
    keys.mkdir()
    for name, content in inputs.keys:
        (keys / name).write_bytes(content)
    version = (inputs.kernel / "version").read_text(encoding="ascii").strip()
    made = builder.build(inputs.tree / "root", version, inputs.modules, sorted(keys.iterdir()), out / "initrd.img")
    say(f"{len(made.modules)} modules, {made.unpacked / 2**20:.1f} MiB unpacked")
    if made.missing_firmware:
        say(f"firmware that the root does not have: {', '.join(made.missing_firmware)}")


STEP = Step(
    "initrd",
    VERSION,
    initrd,
    outputs=("initrd.img",),
    sources=(builder.STAGE, *(Path(str(module.__file__)) for module in (builder, cpio, elf, modules))),
)
