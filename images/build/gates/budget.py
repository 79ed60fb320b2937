"""Gates *budget* and *memory*: what a machine fetches, and what of its memory the image takes.

Called by the manifest step, which alone knows how large the packed root is; all others: `gates`.
"""

from collections import Counter
from pathlib import Path

from images.values.finding import Finding

MIB = 1024 * 1024
LARGEST = 10


def budget(name: str, size: int, budget_mib: int, tree: Path) -> list[Finding]:
    """A finding where kernel, initrd and root (`size`: bytes, as fetched) are more than the recipe allows."""
    if size <= budget_mib * MIB:
        return []
    cause = (
        f"{name} is {size / MIB:.1f} MiB (kernel, initrd and root as a machine fetches them), "
        f"its recipe allows budget_mib: {budget_mib}"
    )
    return [Finding("budget", cause, f"raise it, or leave something out. {_largest(tree)}")]


def memory(name: str, ram_mib: int, machine_memory_mib: int | None, tree: Path) -> list[Finding]:
    """A finding where the image takes more than half of the memory of the smallest machine that is to boot it.

    The other half is for what the machine is there for.
    """
    if machine_memory_mib is None or ram_mib * 2 <= machine_memory_mib:
        return []
    cause = (
        f"{name} needs {ram_mib} MiB of memory (root, kernel, initrd, container images, overlay), "
        f"and half of machine_memory_mib: {machine_memory_mib} is {machine_memory_mib // 2}"
    )
    return [Finding("memory", cause, f"boot it on larger machines, or leave something out. {_largest(tree)}")]


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
