"""What differs between two builds of one recipe, and where it first comes in."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from images.artifact.manifest import Artifact
from images.build.pipeline import Built
from images.build.steps import bootstrap, configure, initrd, kernel, root, uki

SHOWN = 10
"""How many differing files are named."""

_TREES = {"bootstrap": "root", "configure": "root", "kernel": "root"}
_FILES = {"kernel": "vmlinuz", "root": root.IMAGE, "initrd": initrd.IMAGE, "uki": uki.IMAGE}
_ORDER = tuple(step.STEP.name for step in (bootstrap, configure, kernel, root, initrd, uki))


def differences(first: Built, second: Built) -> list[str]:
    """Lines for people: which artifacts differ, and the first step with the first files that differ. Empty: none do."""
    if first.manifest == second.manifest:
        return []
    mine, theirs = dict(first.manifest.artifacts), dict(second.manifest.artifacts)
    lines = [
        f"{name}: {_short(mine[name])}; then {_short(theirs[name])}" for name in mine if mine[name] != theirs[name]
    ]
    lines += [
        f"manifest.{name}: {value!r}; then {getattr(second.manifest, name)!r}"
        for name, value in first.manifest
        if name != "artifacts" and value != getattr(second.manifest, name)
    ]
    for step in (name for name in _ORDER if name in first.products and name in second.products):
        found = list(_step_differences(first.products[step].path, second.products[step].path, step))
        if found:
            more = [f"  … and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
            return [*lines, f"first in step {step}:", *(f"  {line}" for line in found[:SHOWN]), *more]
    return lines


def _step_differences(first: Path, second: Path, step: str) -> Iterator[str]:
    if step in _FILES and _content(first / _FILES[step]) != _content(second / _FILES[step]):
        yield f"{_FILES[step]}: content"
    if step in _TREES:
        yield from tree_differences(first / _TREES[step], second / _TREES[step], times=step == "configure")


def tree_differences(first: Path, second: Path, *, times: bool = True) -> Iterator[str]:
    """`path: what differs` for each path of two trees, sorted. Times only where a step settled them."""
    mine, theirs = scan(first), scan(second)
    for path in sorted(mine.keys() | theirs.keys()):
        if path not in theirs:
            yield f"{path}: only the first time"
        elif path not in mine:
            yield f"{path}: only the second time"
        else:
            skipped = set() if times else {"time"}
            names = [name for name in mine[path] if mine[path][name] != theirs[path][name] and name not in skipped]
            if names:
                yield f"{path}: {', '.join(names)}"


def scan(tree: Path) -> dict[str, dict[str, Any]]:
    """All that a root image keeps of each path: type and permissions, owner, time, content or target, attributes."""
    found = {}
    for folder, folders, names in os.walk(tree):
        for path in (Path(folder, name) for name in (*folders, *names)):
            status = path.lstat()
            found[f"/{path.relative_to(tree)}"] = {
                "mode": status.st_mode,
                "owner": (status.st_uid, status.st_gid),
                "time": int(status.st_mtime),
                "content": _content(path)
                if stat.S_ISREG(status.st_mode)
                else path.is_symlink() and str(path.readlink()),
                "attributes": {
                    name: os.getxattr(path, name, follow_symlinks=False)
                    for name in sorted(os.listxattr(path, follow_symlinks=False))
                },
            }
    return found


def _short(artifact: Artifact) -> str:
    return f"{artifact.sha256[:12]}, {artifact.size} bytes"


def _content(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
