"""What a build root compiled, and of which packages: read before the root goes."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from images.formats import debian


def compiled(root: Path, kernel: str, modules: Mapping[str, Path]) -> dict[str, Any]:
    """The drivers with their modules and source packages, and every package of the root, as JSON has it.

    Args:
        modules: name of each file as the image has it → where dkms left it (`…/dkms/NAME/VERSION/KERNEL/…`).
    """
    packages = debian.installed(_text(root / "var/lib/dpkg/status"))
    origins = debian.origins(root / "var/lib/apt/lists", frozenset(package.identity for package in packages))
    found: dict[tuple[str, str], list[str]] = {}
    for name, path in sorted(modules.items()):
        at = path.relative_to(root / "var/lib/dkms").parts
        found.setdefault((at[0], at[1]), []).append(f"/usr/lib/modules/{kernel}/updates/{name}")
    owners = {name: _owner(root, f"/usr/src/{'-'.join(name)}/dkms.conf") for name in found}
    return {
        "drivers": [
            {"name": name[0], "version": name[1], "package": owners[name], "files": files}
            for name, files in found.items()
        ],
        "packages": [
            asdict(package) | {"origins": [asdict(origin) for origin in origins.get(package.identity, ())]}
            for package in packages
        ],
    }


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _owner(root: Path, path: str) -> str:
    """The name of the package that brought a file, by dpkg's lists; "" where none did."""
    for listed in sorted((root / "var/lib/dpkg/info").glob("*.list")):
        if path in _text(listed).splitlines():
            return listed.name.removesuffix(".list").partition(":")[0]
    return ""
