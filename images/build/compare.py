"""What differs between two builds of one recipe, and where it first comes in."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from images.artifact.manifest import Artifact
from images.build.pipeline import Built
from images.build.plan import all_steps
from images.build.step import Product, Step
from images.values.digests import file_digest

SHOWN = 10
"""How many differing files are named."""

_SETTLED = "configure"
"""The step that settles times; those of other trees are a build's own."""


def differences(first: Built, second: Built) -> list[str]:
    """Lines for people: which artifacts differ, and the first step with the first files that differ. Empty: none do."""
    if first.manifest == second.manifest:
        return []
    earlier, later = dict(first.manifest.artifacts), dict(second.manifest.artifacts)
    lines = [
        f"{name}: {_short(earlier[name])}; then {_short(later[name])}"
        for name in earlier
        if earlier[name] != later[name]
    ]
    lines += [
        f"manifest.{name}: {value!r}; then {getattr(second.manifest, name)!r}"
        for name, value in first.manifest
        if name != "artifacts" and value != getattr(second.manifest, name)
    ]
    for step in (step for step in all_steps() if step.name in first.products and step.name in second.products):
        changes = list(_step_differences(first.products[step.name], second.products[step.name], step))
        if changes:
            more = [f"  … and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else []
            return [*lines, f"first in step {step.name}:", *(f"  {line}" for line in changes[:SHOWN]), *more]
    return lines


def _step_differences(first: Product, second: Product, step: Step[Any]) -> Iterator[str]:
    for name in step.outputs:
        earlier, later = first / name, second / name
        if earlier.is_dir() and later.is_dir():
            yield from tree_differences(earlier, later, times=step.name == _SETTLED)
        elif earlier.is_file() and later.is_file() and file_digest(earlier) != file_digest(later):
            yield f"{name}: content"


def tree_differences(first: Path, second: Path, *, times: bool = True) -> Iterator[str]:
    """`path: what differs` for each path of two trees, sorted. Times only where a step settled them."""
    earlier, later = scan(first), scan(second)
    for path in sorted(earlier.keys() | later.keys()):
        if path not in later:
            yield f"{path}: only the first time"
        elif path not in earlier:
            yield f"{path}: only the second time"
        else:
            skipped = set() if times else {"time"}
            names = [name for name in earlier[path] if earlier[path][name] != later[path][name] and name not in skipped]
            if names:
                yield f"{path}: {', '.join(names)}"


def scan(tree: Path) -> dict[str, dict[str, Any]]:
    """All that a root image keeps of each path: type and permissions, owner, time, content or target, attributes."""
    paths = {}
    for folder, folders, names in os.walk(tree):
        for path in (Path(folder, name) for name in (*folders, *names)):
            status = path.lstat()
            paths[f"/{path.relative_to(tree)}"] = {
                "mode": status.st_mode,
                "owner": (status.st_uid, status.st_gid),
                "time": int(status.st_mtime),
                "content": file_digest(path)
                if stat.S_ISREG(status.st_mode)
                else path.is_symlink() and str(path.readlink()),
                "attributes": {
                    name: os.getxattr(path, name, follow_symlinks=False)
                    for name in sorted(os.listxattr(path, follow_symlinks=False))
                },
            }
    return paths


def _short(artifact: Artifact) -> str:
    return f"{artifact.sha256[:12]}, {artifact.size} bytes"
