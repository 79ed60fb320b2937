"""mksquashfs: the tree becomes the read-only root image."""

from dataclasses import dataclass
from pathlib import Path

from images.recipe import Profile
from images.run import run
from images.step import Product, Say, Step

VERSION = 1

LEVELS: dict[Profile, tuple[int, str]] = {"dev": (3, "128K"), "release": (19, "1M")}
"""zstd level and block size: dev builds in seconds, release is a seventh smaller (design/boot.md, Formats)."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The pruned tree, how hard to compress it, and the image's time."""

    kernel: Product
    profile: Profile
    created: int


def argv(inputs: Inputs, out: Path) -> list[str]:
    """The command; mksquashfs sorts names itself and gives the same bytes for any number of processors."""
    level, block = LEVELS[inputs.profile]
    return [
        *("mksquashfs", str(inputs.kernel / "root"), str(out / "root.squashfs")),
        *("-noappend", "-no-progress", "-quiet", "-exit-on-error"),
        *("-comp", "zstd", "-Xcompression-level", str(level), "-b", block),
    ]


def root(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/root.squashfs`. Times later than the image's become the image's (SOURCE_DATE_EPOCH)."""
    say(f"compressing for profile {inputs.profile}")
    run(argv(inputs, out), env={"SOURCE_DATE_EPOCH": str(inputs.created)})


STEP = Step("root", VERSION, root, outputs=("root.squashfs",))
