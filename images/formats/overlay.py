"""Files that a recipe puts into the root, read whole: what is hashed is what is written."""

from dataclasses import dataclass
from pathlib import Path

from images.errors import RecipeError


@dataclass(frozen=True, slots=True)
class Entry:
    """One file (`content`) or symbolic link (`link`) of the root; owner root, permissions `mode`."""

    path: str
    """Absolute, in the image."""
    mode: int = 0o644
    content: bytes = b""
    link: str | None = None


def read_folder(folder: Path) -> tuple[Entry, ...]:
    """The files and links below `folder` as they are to stand below `/`, sorted by path.

    Permissions are 0755 where the owner may execute and 0644 elsewhere: all that git keeps.

    Raises:
        RecipeError: something that is neither a file, a link nor a folder.
    """
    entries = []
    for item in sorted(folder.rglob("*")):
        path = f"/{item.relative_to(folder).as_posix()}"
        if item.is_symlink():
            entries.append(Entry(path, link=str(item.readlink())))
        elif item.is_file():
            entries.append(read_file(path, item))
        elif not item.is_dir():
            raise RecipeError(f"{item} is neither a file, a link nor a folder; an overlay can hold nothing else")
    return tuple(entries)


def read_file(path: str, source: Path, mode: int | None = None) -> Entry:
    """The file `source` as `path` of the root."""
    default = 0o755 if source.stat().st_mode & 0o100 else 0o644
    return Entry(path, default if mode is None else mode, source.read_bytes())
