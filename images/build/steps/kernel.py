"""The kernel leaves the root: firmware loads it, and the root keeps only the modules that the recipe wants."""

import gzip
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path

from images.build.context import Context
from images.build.step import Product, Products, Say, Step
from images.errors import RecipeError
from images.formats import modules, tree
from images.run import run

VERSION = 1


@dataclass(frozen=True, slots=True)
class Inputs:
    """The configured tree, the modules that its root keeps (None: all), and what else leaves it with the kernel."""

    tree: Product
    modules: tuple[str, ...] | None
    without: tuple[str, ...] = ()


def kernel(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/vmlinuz`, `out/version` (text, one line) and `out/root`: the tree without /boot, with chosen modules.

    Raises:
        RecipeError: no kernel or several, a damaged one, or a module that this kernel does not have.
    """
    source = inputs.tree / "root"
    version = version_of(source)
    _image(source / f"boot/vmlinuz-{version}", out / "vmlinuz")
    (out / "version").write_text(f"{version}\n", encoding="ascii")
    root = out / "root"
    # Hard links cost nothing; whatever is changed below is removed and written anew, never changed in place.
    run(["cp", "--archive", "--link", "--no-target-directory", source, root])
    tree.empty(root, "/boot")
    for path in inputs.without:
        tree.remove(root, path)
    if inputs.modules is not None:
        say(f"keeping {len(inputs.modules)} modules and what they depend on")
        _prune(root, version, inputs.modules)


def _image(packed: Path, out: Path) -> None:
    """The kernel as firmware starts it: a PE file, for both architectures.

    Ubuntu's for arm64 is gzip around that; its loader has to unpack it (Documentation/arch/arm64/booting.rst), and UEFI
    does not.
    """
    with packed.open("rb") as file:
        if file.read(2) != b"\x1f\x8b":
            shutil.copyfile(packed, out)
            return
    try:
        with gzip.open(packed) as plain, out.open("wb") as file:
            shutil.copyfileobj(plain, file)
    except (OSError, EOFError, zlib.error) as error:
        raise RecipeError(f"the kernel /boot/{packed.name} is damaged: {error}") from None


def version_of(root: Path) -> str:
    """The version of the one kernel in a tree.

    Raises:
        RecipeError: none, or more than one.
    """
    versions = sorted(path.name.removeprefix("vmlinuz-") for path in (root / "boot").glob("vmlinuz-*"))
    if len(versions) != 1:
        what = f"{len(versions)} kernels ({', '.join(versions)})" if versions else "no kernel"
        raise RecipeError(f"the image has {what} in /boot and must have one; see kernel.package in the recipe")
    return versions[0]


def _prune(root: Path, version: str, names: tuple[str, ...]) -> None:
    folder = tree.inside(root, f"/lib/modules/{version}/x").parent
    known = modules.Tree(folder)
    kept = {known.paths[name] for name in known.order(names)}
    for path in sorted((folder / "kernel").rglob("*.ko*")):
        if path.relative_to(folder).as_posix() not in kept:
            path.unlink()
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()
    for path in folder.glob("modules.*"):
        if path.name not in {"modules.builtin", "modules.builtin.modinfo", "modules.order"}:
            path.unlink()
    run(["depmod", "--basedir", root, version])


def _inputs(context: Context, products: Products) -> Inputs:
    return Inputs(products["configure"], context.recipe.modules.root, context.removes)


STEP = Step(
    "kernel",
    VERSION,
    kernel,
    outputs=("vmlinuz", "version", "root"),
    inputs=_inputs,
    needs=("configure",),
    tools=lambda context: () if context.recipe.modules.root is None else ("depmod",),
    artifacts={"kernel": "vmlinuz"},
)
