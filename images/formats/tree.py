"""A root file system in a folder: reached into without ever leaving it, whatever its symbolic links say.

We are root and the tree's links are absolute (`/var/run` → `/run`): a path that the kernel resolves leads to the host.
"""

import fnmatch
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from images.errors import RecipeError
from images.formats.overlay import Entry

_MAX_LINKS = 40


def inside(tree: Path, path: str) -> Path:
    """Where `path` (absolute, in the image) lies below `tree`: its parents' links followed as in a chroot, not its own.

    Raises:
        RecipeError: the links go round in a circle.
    """
    parts = [part for part in PurePosixPath(path).parts if part != "/"]
    here: list[str] = []
    links = 0
    while parts:
        part = parts.pop(0)
        if part == "..":
            here = here[:-1]
            continue
        target = tree.joinpath(*here, part)
        if parts and target.is_symlink():
            links += 1
            if links > _MAX_LINKS:
                raise RecipeError(f"{path}: its symbolic links go round in a circle in the image")
            to = PurePosixPath(target.readlink())
            here = [] if to.is_absolute() else here
            parts = [step for step in to.parts if step != "/"] + parts
        else:
            here.append(part)
    return tree.joinpath(*here)


def write(tree: Path, entry: Entry) -> None:
    """Put a file or link into the tree, making its folders; what stood there is replaced.

    Raises:
        RecipeError: a folder stands there, or a file where a folder is needed.
    """
    target = inside(tree, entry.path)
    try:
        _folders(target.parent)
        if target.is_symlink() or target.exists():
            target.unlink()
        if entry.link is not None:
            target.symlink_to(entry.link)
        else:
            target.write_bytes(entry.content)
            target.chmod(entry.mode)
        os.lchown(target, 0, 0)
    except (IsADirectoryError, NotADirectoryError, FileExistsError, PermissionError) as error:
        raise RecipeError(f"{entry.path} cannot be put into the image: {error.strerror}") from None


def _folders(folder: Path) -> None:
    """Make a folder and those above it, 0755 whatever the caller's umask is."""
    if not folder.exists():
        _folders(folder.parent)
        folder.mkdir()
        folder.chmod(0o755)


def remove(tree: Path, path: str) -> bool:
    """Remove a file, link or folder; False where there is none."""
    target = inside(tree, path)
    if target == tree or not os.path.lexists(target):
        return False
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink()
    return True


def empty(tree: Path, path: str) -> None:
    """Remove everything in a folder, and keep the folder."""
    folder = inside(tree, path)
    if folder.is_dir() and not folder.is_symlink():
        for item in folder.iterdir():
            remove(tree, f"/{item.relative_to(tree).as_posix()}")


def glob(tree: Path, pattern: str) -> list[str]:
    """Paths of the image that fit an absolute pattern (`*`, `?`, `[…]`, each within one name), sorted."""
    paths = [""]
    for part in PurePosixPath(pattern).parts[1:]:
        paths = [f"{at}/{name}" for at in paths for name in _matching(inside(tree, f"{at}/x").parent, part)]
    return sorted(paths)


def _matching(folder: Path, pattern: str) -> Iterator[str]:
    if not folder.is_dir() or folder.is_symlink():
        return
    if any(char in pattern for char in "*?["):
        yield from (item.name for item in folder.iterdir() if fnmatch.fnmatchcase(item.name, pattern))
    elif os.path.lexists(folder / pattern):
        yield pattern
