"""A unified kernel image: kernel, initrd and the recipe's arguments behind systemd's EFI stub, in one file.

The sections are systemd-stub(7)'s. The stub is the image's own distribution's (package systemd-boot-efi), so that it
comes from the recipe's signed sources; docs/decisions/013-unified-kernel-images.md says why we put it together.
"""

from dataclasses import dataclass
from pathlib import Path

from images.build import secureboot
from images.build.context import Context
from images.build.secureboot import SecureBootKey
from images.build.step import Product, Products, Say, Step
from images.build.steps import initrd as early
from images.errors import RecipeError
from images.formats import pe, tree
from images.values.kernel_arguments import command_line
from images.values.types import Architecture

VERSION = 2

IMAGE = "uki.efi"
PACKAGE = "systemd-boot-efi"
STUBS = "/usr/lib/systemd/boot/efi"
NAMES: dict[Architecture, str] = {"amd64": "linuxx64.efi.stub", "arm64": "linuxaa64.efi.stub"}


@dataclass(frozen=True, slots=True)
class Inputs:
    """The configured tree (for its stub and os-release), what the file is made of, and who signs it (None: nobody)."""

    tree: Product
    kernel: Product
    initrd: Product
    architecture: Architecture
    arguments: tuple[str, ...]
    created: int
    signer: SecureBootKey | None = None


def uki(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/uki.efi`.

    Raises:
        RecipeError: the image has no stub, or none that sections can be added to.
        CommandError: osslsigncode failed.
    """
    root = inputs.tree / "root"
    stub = tree.inside(root, f"{STUBS}/{NAMES[inputs.architecture]}")
    if not stub.is_file():
        raise RecipeError(
            f"uki: the image has no {STUBS}/{stub.name}; the package {PACKAGE} of its suite must bring it"
        )
    release = tree.inside(root, "/usr/lib/os-release")
    version = (inputs.kernel / "version").read_text(encoding="ascii").strip()
    whole = out / IMAGE
    whole.write_bytes(
        pe.with_sections(
            stub.read_bytes(),
            [
                pe.Section(".osrel", release.read_bytes() if release.is_file() else b""),
                pe.Section(".cmdline", " ".join(inputs.arguments).encode("ascii") + b"\0"),
                pe.Section(".uname", version.encode("ascii") + b"\0"),
                pe.Section(".initrd", (inputs.initrd / early.IMAGE).read_bytes()),
                pe.Section(".linux", (inputs.kernel / "vmlinuz").read_bytes()),  # last: it unpacks itself upwards
            ],
        )
    )
    say(f"{whole.stat().st_size / 2**20:.1f} MiB, {'to be signed' if inputs.signer else 'not signed'}")
    if inputs.signer:
        secureboot.sign(whole, inputs.signer, inputs.created)


def _inputs(context: Context, products: Products) -> Inputs:
    return Inputs(
        tree=products["configure"],
        kernel=products["kernel"],
        initrd=products["initrd"],
        architecture=context.recipe.architecture,
        arguments=command_line(context.recipe.kernel.arguments, (), context.recipe.architecture),
        created=context.created,
        signer=context.secure_boot,
    )


STEP = Step(
    "uki",
    VERSION,
    uki,
    outputs=(IMAGE,),
    inputs=_inputs,
    needs=("configure", "kernel", "initrd"),
    applies=lambda context: context.recipe.uki,
    tools=lambda context: ("osslsigncode",) if context.secure_boot else (),
    artifacts={"uki": IMAGE},
    packages=(PACKAGE,),
    removes=(STUBS,),  # it is in the unified kernel image
)
