"""Gates *budget* and *memory*: what a machine fetches, and what of its memory the image takes.

Called by the manifest step, which alone knows how large the packed root is; all others: `gates`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from images.build.initrd import STAGE
from images.run import run
from images.values.finding import Finding

MIB = 1024 * 1024
LARGEST = 10
RULE = STAGE / "memory.sh"
"""How memory is divided: what the initrd runs."""
COUNTED_PERCENT = 97
"""Of the memory that is installed: what the kernel counts as MemTotal at least (firmware and page tables have the rest;
`images/node/health/checks/memory.py` allows as much)."""


def budget(name: str, size: int, budget_mib: int, tree: Path) -> list[Finding]:
    """A finding where kernel, initrd and root (`size`: bytes, as fetched) are more than the recipe allows."""
    if size <= budget_mib * MIB:
        return []
    cause = (
        f"{name} is {size / MIB:.1f} MiB (kernel, initrd and root as a machine fetches them), "
        f"its recipe allows budget_mib: {budget_mib}"
    )
    return [Finding("budget", cause, f"raise it, or leave something out. {_largest(tree)}")]


@dataclass(frozen=True, slots=True)
class Image:
    """What of an image decides how a machine's memory is divided: bytes of the packed root, bytes of its container
    images in containerd's state, whether it joins a cluster."""

    name: str
    root: int
    containers: int
    join: bool


def divided(image: Image, memory_mib: int) -> dict[str, int]:
    """The parts of a machine's memory (MiB, as the kernel counts it), by the very rule of its initrd.

    Raises:
        CommandError: there is no shell.
    """
    state = "memory" if image.join else "none"  # a disk may be there or not
    sizes = (memory_mib, -(-image.root // MIB), -(-image.containers // MIB))
    said = run(["sh", "-c", '. "$0" && memory_budget "$@"', RULE, *map(str, sizes), state])
    return {name.lower(): int(value) for name, _, value in (line.partition("=") for line in said.splitlines())}


def memory(image: Image, machine_memory_mib: int | None, tree: Path) -> list[Finding]:
    """A finding where less than a quarter of the memory of the smallest machine that is to boot it is left for work."""
    if machine_memory_mib is None:
        return []
    cause = too_little(image, machine_memory_mib)
    remedy = f"boot it on larger machines, or leave something out. {_largest(tree)}"
    return [Finding("memory", f"{cause} (machine_memory_mib: {machine_memory_mib})", remedy)] if cause else []


def memory_of_classes(image: Image, classes: Mapping[str, int]) -> list[Finding]:
    """The same of each class of machines: its name and memory (MiB, installed)."""
    remedy = "say which classes are to boot it (`--class NAME`), declare more memory, or leave something out"
    causes = ((name, too_little(image, memory_mib)) for name, memory_mib in sorted(classes.items()))
    return [Finding("memory", f"{cause} (class {name})", remedy) for name, cause in causes if cause]


def too_little(image: Image, installed_mib: int) -> str:
    """Why a machine has not the memory for an image (MiB, as installed); "" where it has."""
    counted = installed_mib * COUNTED_PERCENT // 100
    parts = divided(image, counted)
    if parts["left"] * 4 >= counted:
        return ""
    names = ("image", "system", "overlay", "store", "kubelet", "eviction")
    taken = ", ".join(f"{name} {parts[name]}" for name in names if parts[name])
    left = f"leaves {max(parts['left'], 0)} of {counted} MiB for work"
    return f"{image.name} {left}, and a quarter is {counted // 4}: {taken}"


def _largest(tree: Path) -> str:
    lines = (f"  {size / MIB:9.1f} MiB  {name}" for name, size in contributors(tree).most_common(LARGEST))
    return "The largest parts, uncompressed:\n" + "\n".join(lines)


def contributors(tree: Path) -> Counter[str]:
    """Bytes in a tree by the package that brought them; a folder's path for what no package owns."""
    owner: dict[Path, str] = {}
    for listing in sorted((tree / "var/lib/dpkg/info").glob("*.list")):
        package = listing.name.removesuffix(".list").partition(":")[0]
        owner |= {_real(tree, line): package for line in listing.read_text(encoding="utf-8").splitlines()}
    sizes: Counter[str] = Counter()
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink():
            name = owner.get(path) or "/" + "/".join(path.relative_to(tree).parts[:3])
            sizes[name] += path.stat().st_size
    return sizes


def _real(tree: Path, path: str) -> Path:
    """Where a package's file lies on a merged /usr: packages still say /lib/… for /usr/lib/…"""
    parts = Path(path).parts[1:]
    merged = bool(parts) and (tree / parts[0]).is_symlink()
    return tree.joinpath(*(("usr", *parts) if merged else parts))
