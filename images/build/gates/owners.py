"""Facts of who owns files: what dpkg's lists say of each package (dpkg-query(1), `--listfiles`)."""

import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from images.formats import tree

_MERGED = re.compile(r"/(bin|sbin|lib|lib32|lib64|libx32)/")
"""Folders that are links into /usr where it is merged: the same file under two names."""


def several(root: Path, installed: Container[str]) -> Mapping[str, tuple[str, ...]]:
    """Path of each regular file of the root that several packages have → their names; but for what was diverted.

    installed: names of packages. One that was removed and not purged keeps a list, of its configuration.
    """
    diverted = frozenset(_diverted(root))
    owners: dict[str, set[str]] = {}
    for name in tree.glob(root, "/var/lib/dpkg/info/*.list"):
        package = name.rpartition("/")[2].removesuffix(".list").partition(":")[0]
        if package not in installed:
            continue
        for line in tree.inside(root, name).read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            owners.setdefault(_merged(root, line), set()).add(package)
    return {
        path: tuple(sorted(packages))
        for path, packages in owners.items()
        if len(packages) > 1 and path not in diverted and _is_regular(tree.inside(root, path))
    }


def _is_regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _merged(root: Path, path: str) -> str:
    match = _MERGED.match(path)
    return f"/usr{path}" if match and (root / match[1]).is_symlink() else path


def _diverted(root: Path) -> Iterator[str]:
    """dpkg-divert(1): three lines each, of which the first is the path as packages have it."""
    file = tree.inside(root, "/var/lib/dpkg/diversions")
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    yield from (_merged(root, path) for path in lines[::3])
