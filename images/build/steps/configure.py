"""From packages to a system that runs without a disk: overlay, units, removals, and nothing that names one machine."""

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from images.build.bytecode import compile_node
from images.build.containers import Archive
from images.build.context import Context
from images.build.node_files import entries_of, installable
from images.build.step import Product, Products, Say, Step
from images.errors import CommandError, RecipeError
from images.formats import tree
from images.formats.overlay import Entry
from images.run import run
from images.values.digests import file_digest

VERSION = 5

ARCHIVES = "/usr/lib/netboot/images"
"""Where container images lie in a root, each file named by its digest; `netboot-images.service` loads them."""

IDENTITY = (
    "/etc/ssh/ssh_host_*_key*",
    "/etc/nvme/hostid",
    "/etc/nvme/hostnqn",
    "/etc/iscsi/initiatorname.iscsi",
    "/var/lib/dbus/machine-id",
    "/var/lib/systemd/random-seed",
    "/var/lib/urandom/random-seed",
    "/var/lib/systemd/credential.secret",
    "/var/lib/dhcp/*.leases",
    "/var/lib/dhclient/*.leases",
    "/var/lib/dhcpcd/*.lease*",
    "/var/lib/NetworkManager/*.lease",
    "/etc/hostname",
)
"""What makes one machine different from all others, and would be the same on a whole fleet if an image had it."""

LEFTOVERS = (
    "/etc/apt/apt.conf.d/99mmdebstrap",
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d/0000netboot.sources",
    "/etc/dpkg/dpkg.cfg.d/99mmdebstrap",
    "/etc/resolv.conf",
    "/etc/.pwd.lock",
    "/etc/*-",
    "/var/log/journal",
    "/initrd.img*",
    "/vmlinuz*",
    "/var/cache/ldconfig/aux-cache",
    "/var/lib/dpkg/*-old",
    "/var/lib/apt/extended_states",
)
"""What package tools leave behind: their settings for this build, backups, caches."""

EMPTIED = (
    "/dev",
    "/proc",
    "/sys",
    "/run",
    "/tmp",  # noqa: S108 - of the image
    "/var/tmp",  # noqa: S108
    "/var/cache/apt",
    "/var/cache/debconf",
    "/var/lib/apt/lists",
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The installed tree, and what the recipe wants of it; a recipe's file replaces one of `node`'s."""

    base: Product
    node: tuple[Entry, ...]
    node_units: tuple[str, ...]
    entries: tuple[Entry, ...]
    units: Mapping[str, Literal["enable", "disable", "mask"]]
    remove: tuple[str, ...]
    created: int
    archives: tuple[Archive, ...] = ()
    drivers: Product | None = None
    """Modules compiled for this kernel (`images.build.steps.drivers`)."""


def configure(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/root`.

    Raises:
        RecipeError: a file, a unit or a removal that cannot be; the image would still name one machine.
    """
    root = out / "root"
    say("copying the installed tree")
    run(["cp", "--archive", "--no-target-directory", inputs.base / "root", root])
    _clean(root)
    if inputs.drivers:
        _drivers(root, inputs.drivers)
    for entry in (*inputs.node, *inputs.entries):
        tree.write(root, entry)
    for archive in inputs.archives:
        _archive(root, archive)
    say("enabling and masking units")
    _units(root, dict.fromkeys(inputs.node_units, "enable") | dict(inputs.units))
    for pattern in inputs.remove:
        _remove(root, pattern)
    compile_node(root)
    _lock_root(root)
    _forget_identity(root, {entry.path for entry in inputs.entries})
    _settle(root, inputs.created)


def _clean(root: Path) -> None:
    for pattern in LEFTOVERS:
        for path in tree.glob(root, pattern):
            tree.remove(root, path)
    for folder in EMPTIED:
        tree.empty(root, folder)
    for log in tree.inside(root, "/var/log").rglob("*"):  # its folders stay: services need theirs
        if not log.is_dir() or log.is_symlink():
            log.unlink()


def _drivers(root: Path, drivers: Product) -> None:
    """Put compiled modules where depmod prefers them to the kernel's own (depmod.d(5))."""
    version = (drivers / "version").read_text(encoding="ascii").strip()
    folder = tree.inside(root, f"/lib/modules/{version}/x").parent
    if not folder.is_dir():
        there = ", ".join(sorted(path.name for path in folder.parent.glob("*"))) or "none"
        raise RecipeError(f"drivers: compiled for kernel {version}, and the image has {there}; build again")
    for path in sorted((drivers / "modules").iterdir()):
        tree.write(root, Entry(f"/usr/lib/modules/{version}/updates/{path.name}", content=path.read_bytes()))
    run(["depmod", "--basedir", root, version])


def _archive(root: Path, archive: Archive) -> None:
    """Copied and not read whole: it may be large."""
    if not os.path.lexists(tree.inside(root, "/usr/bin/ctr")):
        raise RecipeError(
            "container_images: the image has no /usr/bin/ctr to load them with; add the package containerd"
        )
    target = tree.inside(root, f"{ARCHIVES}/{archive.sha256[:16]}.tar")
    tree.write(root, Entry(f"{ARCHIVES}/{target.name}"))
    shutil.copyfile(archive.path, target)
    if file_digest(target) != archive.sha256:
        raise RecipeError(f"container_images: {archive.path} changed while it was being read; run the build again")


def _units(root: Path, units: Mapping[str, str]) -> None:
    """By the image's own systemctl: it knows [Install] sections, aliases and templates of its own version."""
    for unit, verb in units.items():
        if verb == "mask":
            tree.write(root, Entry(f"/etc/systemd/system/{unit}", link="/dev/null"))
            continue
        try:
            run(["chroot", root, "systemctl", verb, unit], env={"SYSTEMD_OFFLINE": "1"}, timeout=60)
        except CommandError as error:
            last = error.output.splitlines()[-1] if error.output else str(error)
            raise RecipeError(f"units.{unit}: {verb} is not possible in this image: {last}") from None


def _remove(root: Path, pattern: str) -> None:
    paths = tree.glob(root, pattern)
    if not paths:
        raise RecipeError(f"remove: nothing in the image fits {pattern!r}; take it out of the recipe")
    for path in paths:
        tree.remove(root, path)


def _lock_root(root: Path) -> None:
    """Nobody logs in as root with a password: '*' fits none (shadow(5))."""
    shadow = tree.inside(root, "/etc/shadow")
    if not shadow.is_file():
        raise RecipeError("the image has no /etc/shadow; add the package passwd to the recipe")
    lines = shadow.read_text(encoding="utf-8").splitlines(keepends=True)
    shadow.write_text("".join(_locked(line) if line.startswith("root:") else line for line in lines), encoding="utf-8")


def _locked(line: str) -> str:
    name, _, *rest = line.split(":")
    return ":".join([name, "*", *rest])


def _forget_identity(root: Path, ours: set[str]) -> None:
    """Remove what names one machine; then look again, by content and not by who wrote it."""
    for path in identity_files(root):
        if path in ours:
            raise RecipeError(f"{path} names one machine, and an image is for many; take it out of the recipe's files")
        tree.remove(root, path)
    # Empty: systemd makes an id at each boot (machine-id(5)). Absent would make each boot a first boot.
    tree.write(root, Entry("/etc/machine-id"))
    left = list(identity_files(root))
    if left:
        raise RecipeError(f"the image would name one machine: {', '.join(left)}")


def identity_files(root: Path) -> Iterator[str]:
    """Files of a tree that name one machine."""
    for pattern in IDENTITY:
        yield from tree.glob(root, pattern)
    machine_id = tree.inside(root, "/etc/machine-id")
    if machine_id.is_file() and machine_id.read_bytes().strip():
        yield "/etc/machine-id"


def _settle(root: Path, created: int) -> None:
    """Times of the build become the image's time, and systemd is told that /etc and /var are of this /usr.

    Without the stamps each boot rebuilds the linker's cache, hwdb and catalog (systemd-update-done.service(8)).
    """
    for name in ("etc", "var"):
        tree.write(root, Entry(f"/{name}/.updated"))
    for path in (root, *root.rglob("*")):
        if path.lstat().st_mtime > created:
            os.utime(path, (created, created), follow_symlinks=False)
    for path in (root / "usr", root / "etc/.updated", root / "var/.updated"):
        os.utime(path, (created, created))


def _inputs(context: Context, products: Products) -> Inputs:
    recipe = context.recipe
    node = entries_of(join=recipe.join, containers=bool(context.archives), login="console-login" in recipe.debug)
    return Inputs(
        base=products["bootstrap"],
        node=node,
        node_units=installable(node),
        entries=recipe.entries(),
        units=recipe.units,
        remove=recipe.remove,
        created=context.created,
        archives=context.archives,
        drivers=products.get("drivers"),
    )


STEP = Step(
    "configure",
    VERSION,
    configure,
    outputs=("root",),
    inputs=_inputs,
    needs=("bootstrap", "drivers"),
    tools=lambda context: ("depmod",) if context.recipe.drivers else (),
)
