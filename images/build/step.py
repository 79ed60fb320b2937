"""What a build step is, and what makes two runs of it the same run: the values of the pipeline."""

import dataclasses
import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from images.artifact.manifest import canonical

I = TypeVar("I")  # noqa: E741 - inputs
PLACE: Mapping[str, Any] = {"place": True}
"""Metadata of a dataclass's field that only says where a thing is; what it is, other fields say. It is not hashed."""
Say = Callable[[str], None]
"""Takes one line about what is going on, for people."""


@dataclass(frozen=True, slots=True)
class Product:
    """What a step made: the files under `path`; `key` stands for their content."""

    key: str
    path: Path

    def __truediv__(self, name: str) -> Path:
        return self.path / name


@dataclass(frozen=True, slots=True)
class Step(Generic[I]):
    """One step: `run(inputs, out, say)` writes `outputs` (names of files or folders) into the empty folder `out`.

    A step is a function of its inputs: nothing else that could change what it writes may be looked at. `sources` are
    files and folders, besides the step's own file, whose content decides what it does.
    """

    name: str
    version: int
    run: Callable[[I, Path, Say], None]
    outputs: tuple[str, ...]
    sources: tuple[Path, ...] = ()

    def identity(self) -> str:
        """Hash of the step itself: name, version, its own source and what else it is made of."""
        own = Path(inspect.getsourcefile(self.run) or "")
        return digest(
            [self.name, self.version, list(self.outputs), [tree_digest(path) for path in (own, *self.sources)]]
        )

    def key(self, inputs: I) -> str:
        """The cache key: hash of the step and of its inputs."""
        return digest([self.identity(), plain(inputs)])


def digest(value: Any) -> str:
    """SHA-256 of a plain value's canonical JSON, 64 hexadecimal characters."""
    return hashlib.sha256(canonical(value)).hexdigest()


def plain(value: Any) -> Any:
    """A value as JSON that two equal values share, for hashing.

    Raises:
        TypeError: the value has no content to be hashed (a path, say: the same path may hold other bytes tomorrow).
    """
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, Product):
        return {"product": value.key}
    if isinstance(value, bytes):
        return {"sha256": hashlib.sha256(value).hexdigest()}
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        decides = (field.name for field in dataclasses.fields(value) if field.metadata != PLACE)
        return {name: plain(getattr(value, name)) for name in decides}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    raise TypeError(f"a {type(value).__name__} cannot be an input of a step: it has no content that can be hashed")


def by_content(product: Product, name: str) -> Product:
    """A product of which only the file `name` counts: what is made of that file is made anew when its bytes change."""
    return Product(file_digest(product / name), product.path)


def file_digest(path: Path) -> str:
    """SHA-256 of a file that may be large, 64 hexadecimal characters."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_digest(path: Path) -> str:
    """Hash of a file, or of a folder's files: names, contents, executable bits and links, not times or owners."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    found: list[list[Any]] = []
    for item in sorted(path.rglob("*")):
        if "__pycache__" in item.parts:
            continue
        name = item.relative_to(path).as_posix()
        if item.is_symlink():
            found.append([name, "link", str(item.readlink())])
        elif item.is_file():
            found.append([name, bool(item.stat().st_mode & 0o111), hashlib.sha256(item.read_bytes()).hexdigest()])
    return digest(found)
