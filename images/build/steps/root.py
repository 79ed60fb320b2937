"""The tree becomes the read-only root image: squashfs, or erofs where the recipe asks for it."""

from dataclasses import dataclass
from pathlib import Path

from images.build.context import Context
from images.build.step import Product, Products, Say, Step
from images.recipe.recipe import Profile
from images.run import run
from images.values.types import RootFormat

VERSION = 2

IMAGE = "root.img"
"""The product's file, whatever its format is: the manifest says that."""

SQUASHFS: dict[Profile, tuple[str, ...]] = {
    "dev": ("-Xcompression-level", "3", "-b", "128K"),
    "release": ("-Xcompression-level", "19", "-b", "1M"),
}
"""zstd level and block size: dev builds in seconds, release is a seventh smaller (design/boot.md, Formats)."""

EROFS: dict[Profile, tuple[str, ...]] = {"dev": ("-zlz4",), "release": ("-zlz4hc,9",)}
"""What both Debian 12's kernel (6.1) and its mkfs.erofs (1.5) can: LZ4. zstd needs 6.10 and 1.8, LZMA an option that
Debian's kernel does not have. Level 12 takes four times as long as 9 and is 0.3 % smaller."""

MEMORY = "128M"
"""What mksquashfs may fill with blocks under way; its default is a quarter of the memory. The bytes are the same."""

TOOLS: dict[RootFormat, tuple[str, ...]] = {"squashfs": ("mksquashfs", "libzstd"), "erofs": ("mkfs.erofs", "liblz4")}
"""What compresses is a library's, and programs do not tell of it."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The pruned tree, how hard to compress it, the image's time, and the file system."""

    kernel: Product
    profile: Profile
    created: int
    format: RootFormat = "squashfs"


def argv(inputs: Inputs, out: Path) -> list[str]:
    """The command; both tools sort names themselves and give the same bytes for any number of processors."""
    tree, image = str(inputs.kernel / "root"), str(out / IMAGE)
    if inputs.format == "erofs":
        return [
            *("mkfs.erofs", "--quiet", "-U", "00000000-0000-0000-0000-000000000000"),
            *EROFS[inputs.profile],
            *("-C65536", "-Eztailpacking", image, tree),
        ]
    return [
        *("mksquashfs", tree, image, "-noappend", "-no-progress", "-quiet", "-exit-on-error"),
        *("-mem", MEMORY, "-comp", "zstd", *SQUASHFS[inputs.profile]),
    ]


def root(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/root.img`. Times later than the image's become the image's (SOURCE_DATE_EPOCH)."""
    say(f"compressing as {inputs.format} for profile {inputs.profile}")
    run(argv(inputs, out), env={"SOURCE_DATE_EPOCH": str(inputs.created)})


def _inputs(context: Context, products: Products) -> Inputs:
    return Inputs(products["kernel"], context.recipe.profile, context.created, context.recipe.root_format)


STEP = Step(
    "root",
    VERSION,
    root,
    outputs=(IMAGE,),
    inputs=_inputs,
    needs=("kernel",),
    tools=lambda context: TOOLS[context.recipe.root_format],
    artifacts={"root": IMAGE},
)
