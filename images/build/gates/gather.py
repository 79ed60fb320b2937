"""From a finished image's tree and initrd to the facts that gates judge: everything is read once, and here."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from images.build.gates import accounts, content, early, kmod, owners, packages, programs
from images.build.gates.checks import identity
from images.build.gates.facts import Facts, RecipeFacts
from images.formats import tree
from images.formats.modules import Tree

_MODPROBE = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/lib/modprobe.d")
"""In modprobe.d(5)'s order: a file of one folder hides those of its name in the next."""
_LIBRARY = re.compile(r"lib[A-Za-z0-9_+.-]+\.so\.\d{3,}\.[\d.]+")


def gather(
    lists: Path, before: Path, root: Path, kernel: str, initrd: Path, recipe: RecipeFacts, dracut: Path | None = None
) -> Facts:
    """Read everything.

    Args:
        lists: apt's folder of lists, as the packages were installed.
        before: the tree with all that the kernel's packages brought. root: the finished one.
        dracut: the initrd's own packages, where dracut made it (`images.build.dracut.PACKAGES`).

    Raises:
        ImageError: the initrd is damaged. CommandError: a tool failed.
    """
    status = tree.inside(root, "/var/lib/dpkg/status")
    installed = packages.installed(status.read_bytes() if status.is_file() else b"")
    names = {name for name, _, _ in installed}
    first = early.read(initrd)
    of_initrd = json.loads(dracut.read_bytes()) if dracut else {"packages": [], "owners": {}}
    early_packages = tuple((one["name"], one["version"], one["architecture"]) for one in of_initrd["packages"])
    return Facts(
        recipe=recipe,
        kernel=kernel,
        known=Tree(tree.inside(before, f"/lib/modules/{kernel}/x").parent),
        modules=kmod.in_root(root, kernel),
        strange_kernels=kmod.strange_kernels(root, kernel),
        early=first.modules,
        early_firmware=first.firmware,
        early_keys=first.keys,
        early_logins=first.logins,
        firmware=tuple(sorted(_firmware(root))),
        libraries=tuple(sorted(_libraries(root))),
        modprobe=tuple(_modprobe(root)),
        identity=(
            *identity.files(root),
            *(f"{path} in the initrd" for path in first.paths if identity.names_one(path)),
        ),
        accounts=tuple(_accounts(root)),
        content=content.read(root),
        packages=installed,
        early_paths=first.paths,
        early_packages=early_packages,
        owners={
            **owners.several(root, names),
            **{f"{path} in the initrd": tuple(several) for path, several in of_initrd["owners"].items()},
        },
        sources=packages.read_lists(lists, recipe.releases, names | {name for name, _, _ in early_packages}),
        programs=programs.versions(root, installed),
    )


def _firmware(root: Path) -> Iterator[str]:
    folder = tree.inside(root, "/lib/firmware/x").parent
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        target = tree.inside(root, f"/{path.relative_to(root).as_posix()}/x").parent
        if target.is_file():  # through links as the image itself has them; a link to nothing is no firmware
            yield early.bare(name)


def _libraries(root: Path) -> Iterator[str]:
    for place in ("/usr/lib", "/opt", "/usr/local/lib"):
        for folder, _, names in os.walk(tree.inside(root, f"{place}/x").parent):
            for name in names:
                if _LIBRARY.fullmatch(name) and not Path(folder, name).is_symlink():
                    yield f"/{Path(folder, name).relative_to(root).as_posix()}"


def _modprobe(root: Path) -> Iterator[str]:
    seen: dict[str, str] = {}
    for folder in _MODPROBE:
        for path in tree.glob(root, f"{folder}/*.conf"):
            seen.setdefault(path.rpartition("/")[2], path)
    for path in sorted(seen.values()):
        file = tree.inside(root, f"{path}/x").parent
        if file.is_file():
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            yield from (line.partition("#")[0].strip() for line in lines if line.partition("#")[0].strip())


def _accounts(root: Path) -> Iterator[str]:
    for path in content.ACCOUNTS:
        file = tree.inside(root, path)
        if file.is_file() and not file.is_symlink():
            yield from accounts.with_password(path, file.read_text(encoding="utf-8", errors="replace"))
