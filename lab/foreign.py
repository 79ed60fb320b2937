"""What `lab.packages` lays out for this machine's architecture, made that of another one, without running its programs.

Libraries that are Python alone are the same on both. Those that are compiled are exchanged for the wheels that their
makers publish for the other architecture: the same versions, by the hashes of the same lock.
"""

import platform
import shutil
import sys
import tempfile
from pathlib import Path
from typing import get_args

from images.build.architecture import native
from images.values.types import Architecture
from lab import elf, packages
from lab.errors import UnusableError
from lab.lock import LOCK, locked

_WHEELS = {"amd64": "x86_64", "arm64": "aarch64"}
"""Debian's architecture → that of a wheel's name."""


def wanted(names: str) -> list[Architecture]:
    """Those that are named (`ARCH`); without any, this machine's.

    Raises:
        UnusableError: nothing is packed for one of that name.
    """
    known: tuple[Architecture, ...] = get_args(Architecture)
    asked = names.split() or [native()]
    if unknown := sorted(set(asked) - set(known)):
        raise UnusableError(f"ARCH={' '.join(unknown)}: packages and images are made for {' and '.join(known)}")
    return [each for each in known if each in asked]


def tree(own: Path, architecture: Architecture) -> Path:
    """What `packages.laid_out` made, for this architecture: of another one a copy beside it.

    Raises:
        subprocess.CalledProcessError, UnusableError: as `become`.
    """
    if architecture == native():
        return own
    other = own.with_name(architecture)
    shutil.copytree(own, other, symlinks=True)
    become(other, architecture)
    return other


def become(root: Path, architecture: Architecture) -> None:
    """`root`, as `packages.laid_out` leaves it, is `architecture`'s then.

    Raises:
        subprocess.CalledProcessError: a library has no wheel for it; pip names that one, on our standard error.
        UnusableError: something is left that is compiled for this machine.
    """
    (libraries,) = (root / packages.HOME).glob("lib/python3*/site-packages")
    names = compiled(libraries)
    with tempfile.TemporaryDirectory() as scratch:
        lock, new = Path(scratch, LOCK), Path(scratch, "new")
        lock.write_text(locked(names), encoding="utf-8")
        wanted = [f"--platform={each}" for each in platforms(architecture, platform.libc_ver()[1])]
        version = [f"--python-version={libraries.parent.name.removeprefix('python')}", "--implementation=cp"]
        options = [*version, *wanted, "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(lock)]
        packages.install(sys.executable, "--target", str(new), *options)  # the tree's own pip is gone by now
        shutil.rmtree(new / "bin", ignore_errors=True)
        packages.settle(new, Path("/", libraries.relative_to(root)))
        for each in (path for paths in elf.machines(libraries).values() for path in paths):
            (libraries / each).unlink()
        _exchange(new, libraries)
    packages.same_modes(libraries)
    left = elf.machines(libraries)
    left.pop(elf.OF[architecture], None)
    if left:
        files = sorted(path for paths in left.values() for path in paths)
        raise UnusableError(f"not for {architecture}, though its wheel says so: {', '.join(files)}")


def compiled(libraries: Path) -> set[str]:
    """Names of the distributions whose wheel was for one kind of machine (`Tag` of WHEEL: PEP 427)."""
    found = set()
    for wheel in libraries.glob("*.dist-info/WHEEL"):
        tags = [line for line in wheel.read_text(encoding="utf-8").splitlines() if line.startswith("Tag: ")]
        if not any(tag.endswith("-any") for tag in tags):
            found.add(wheel.parent.name.partition("-")[0])
    return found


def platforms(architecture: Architecture, glibc: str) -> list[str]:
    """Platform tags of wheels that a distribution with this glibc can load, the newest first (PEP 600)."""
    machine, minor = _WHEELS[architecture], int(glibc.split(".")[1])
    aliases = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    found = []
    for each in range(minor, 4, -1):
        found.append(f"manylinux_2_{each}_{machine}")
        if each in aliases:
            found.append(f"{aliases[each]}_{machine}")
    return [*found, f"linux_{machine}"]


def _exchange(new: Path, old: Path) -> None:
    """What is in `new` takes the place of what has its name in `old`: whole packages, but the parts of namespaces."""
    for path in new.iterdir():
        there = old / path.name
        if path.is_dir() and there.is_dir() and not any((path / name).exists() for name in ("__init__.py", "METADATA")):
            _exchange(path, there)
            continue
        if there.is_dir():
            shutil.rmtree(there)
        shutil.move(path, there)
