"""The Debian package of this tree, made once for all tests that install it."""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lab import packages
from lab.work import CACHE, ROOT

VERSION = "0.1.0"
_PACKED = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "requirements.lock")
_MAKERS = ("lab/packages.py", "lab/lock.py", "lab/man_pages.py")
_FOLDERS = (*packages.OURS, "docs", "deploy")


def package(folder: Path) -> Path:
    """It, in `folder`; made now where no test has made it of the same files. The cache has the last one alone."""
    kept = CACHE / "deb" / _identity()
    kept.parent.mkdir(parents=True, exist_ok=True)
    with (CACHE / "deb.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.is_dir():
            shutil.rmtree(kept.parent)
            new = kept.with_name("new")
            new.mkdir(parents=True)
            with tempfile.TemporaryDirectory() as scratch:
                root = packages.laid_out(Path(scratch), packages.wheel(Path(scratch)))
                shutil.copy(packages.pack(root, VERSION), new)
            new.rename(kept)
        (made,) = kept.iterdir()
        return Path(shutil.copy(made, folder))


def _identity() -> str:
    """Of what a package is made of: names and bytes of all files, and the Python that it is for."""
    digest = hashlib.sha256(os.path.realpath(packages.PYTHON).encode())
    for path in _files():
        digest.update(f"\n{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return digest.hexdigest()[:16]


def _files() -> Iterator[Path]:
    yield from (ROOT / name for name in (*_PACKED, *_MAKERS))
    for name in _FOLDERS:
        found = (path for path in (ROOT / name).rglob("*") if "__pycache__" not in path.parts)
        yield from sorted(path for path in found if path.is_file())
