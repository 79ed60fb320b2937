"""Versions of the programs whose versions decide: in their own words, else by their packages."""

import re
from pathlib import Path

from images.build.gates.facts import Package
from images.errors import CommandError
from images.formats import tree
from images.run import run

PACKAGES = {"kubelet": ("kubelet",), "containerd": ("containerd", "containerd.io")}
_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin")
"""As systemd looks for them (systemd-path(1), search-binaries-default)."""
_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec chroot "$0" "$@"'
"""In a mount namespace of its own: a program that is asked must not change the tree."""


def versions(root: Path, packages: tuple[Package, ...]) -> dict[str, str]:
    """Versions by program, of those that are in the image."""
    by_program = {}
    for name, brought_by in PACKAGES.items():
        by_package = next((version for package, version, _ in packages if package in brought_by), "")
        version = _ask(root, name) or by_package
        if version:
            by_program[name] = version
    return by_program


def _ask(root: Path, name: str) -> str:
    """What `name --version` says; nothing where it is not there or cannot run here (another architecture)."""
    for folder in _FOLDERS:
        path = f"{folder}/{name}"
        file = tree.inside(root, f"{path}/x").parent
        if file.is_file():
            argv: list[str | Path] = ["unshare", "--mount", "--", "sh", "-c", _READ_ONLY, root, path, "--version"]
            try:
                return version_of(run(argv, timeout=60))
            except CommandError:
                return ""
    return ""


def version_of(text: str) -> str:
    """`Kubernetes v1.34.4` → `1.34.4`; `containerd github.com/… 1.6.20~ds1 …` → `1.6.20`."""
    match = re.search(r"\bv?(\d+\.\d+\.\d+)", text)
    return match[1] if match else ""
