"""The .deb files of earlier builds, so that a package is fetched once: a folder in the build cache.

    <cache>/packages/<sha256>-<name>_<version>_<architecture>.deb

apt believes a file in its archive folder by its size. So a kept file is offered only if its digest is in the package
lists of this very build, which apt verified by then; and its bytes are hashed each time, so that a damaged one is
thrown away. Nothing is shared but by hard links and their removal: builds side by side, and killed ones, do no harm.

Run as a script it is a hook of mmdebstrap, hence nothing of ours is imported: `packages.py FOLDER TREE` is `offer`.
"""

import hashlib
import mmap
import os
import re
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LISTS = "var/lib/apt/lists"
ARCHIVES = "var/cache/apt/archives"

_DIGEST = re.compile(rb"^SHA256: ([0-9a-f]{64})$", re.MULTILINE)
_KEPT = re.compile(r"([0-9a-f]{64})-(.+\.deb)")


def arguments(folder: Path) -> list[str]:
    """Options of mmdebstrap that use what `folder` has, and leave what was fetched in the tree, for `keep`.

    The lists are fetched before mmdebstrap does it: it has no hook in between. The second time mirrors say that
    nothing is new; and where the first time fails it is mmdebstrap that says why.
    """
    script = shlex.join([sys.executable, "-I", str(Path(__file__)), str(folder)])
    hook = f'if APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -qq update 2>/dev/null; then {script} "$1"; fi'
    used = [f"--setup-hook={hook}"] if any(_kept(folder)) else []
    return [*used, "--skip=essential/unlink", "--skip=cleanup/apt/cache"]


def offer(folder: Path, tree: Path) -> list[str]:
    """Link into apt's archives of `tree` what its package lists know; returns the names."""
    listed = _listed_digests(tree / LISTS)
    by_name: defaultdict[str, list[Path]] = defaultdict(list)
    for digest, path in _kept(folder):
        if digest in listed:
            by_name[path.name.partition("-")[2]].append(path)
    archives = tree / ARCHIVES
    archives.mkdir(parents=True, exist_ok=True)
    return sorted(name for name, paths in by_name.items() if _offer(paths, archives / name))


def _offer(paths: list[Path], target: Path) -> bool:
    if len(paths) > 1:  # of two sources, with one version: which of them is wanted apt knows, and fetches it
        return False
    (path,) = paths
    try:
        if _digest(path) != path.name.partition("-")[0]:
            path.unlink(missing_ok=True)
            return False
        os.link(path, target)
    except FileNotFoundError:  # another build removed it
        return False
    return True


def keep(folder: Path, tree: Path) -> None:
    """Move into the folder what apt has in `tree`: what it fetched and verified, and what it was offered."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    ours = {_inode(path): path for _, path in _kept(folder)}
    for path in sorted((tree / ARCHIVES).glob("*.deb")):
        kept = ours.get(_inode(path)) or folder / f"{_digest(path)}-{path.name}"
        with suppress(FileExistsError):
            os.link(path, kept)
        os.utime(path)  # used now; of a file with two names
        path.unlink()


def _kept(folder: Path) -> Iterator[tuple[str, Path]]:
    """Digest and file of each."""
    for path in folder.iterdir() if folder.is_dir() else ():
        match = _KEPT.fullmatch(path.name)
        if match:
            yield match[1], path


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:  # another build removed it
        return None


def _listed_digests(lists: Path) -> set[str]:
    """SHA-256 of all packages of all sources; the lists are large, and stay where they are."""
    digests: set[str] = set()
    for path in lists.glob("*_Packages"):
        if path.stat().st_size:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                digests.update(match[1].decode() for match in _DIGEST.finditer(text))
    return digests


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.stderr.write(f"I: {len(offer(Path(sys.argv[1]), Path(sys.argv[2])))} packages are there already\n")
