"""What is in an image and no package brought: compiled drivers, what is ours, files of the recipe; with digests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from images.formats import tree
from images.formats.debian import Origin, Package
from images.values.digests import file_digest

Kind = Literal["driver", "application", "file"]
File = tuple[str, str]
"""Path in the image and SHA-256; "" of a symbolic link."""


@dataclass(frozen=True, slots=True)
class Source:
    """A package that went into what was compiled, and where it came from."""

    package: Package
    origins: tuple[Origin, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """One such part: a driver of several modules, a program of ours, a file."""

    kind: Kind
    name: str
    files: tuple[File, ...]
    version: str = ""
    made_of: Source | None = None
    """The package with a driver's sources."""
    patches: tuple[tuple[str, bytes], ...] = ()


def sources(document: Mapping[str, Any]) -> tuple[Source, ...]:
    """The packages of a build root (`images.build.documents.compiled`)."""
    return tuple(
        Source(
            Package(**{key: value for key, value in package.items() if key != "origins"}),
            tuple(Origin(**origin) for origin in package["origins"]),
        )
        for package in document["packages"]
    )


def only_in(document: Mapping[str, Any], packages: Iterable[Package]) -> tuple[Source, ...]:
    """The packages of a build root (`sources`) that are none of these."""
    known = {package.identity for package in packages}
    return tuple(source for source in sources(document) if source.package.identity not in known)


def drivers(document: Mapping[str, Any], root: Path, patches: tuple[tuple[str, bytes], ...]) -> tuple[Part, ...]:
    """The drivers of a build root, with digests of what the finished image has of them."""
    by_name = {source.package.name: source for source in sources(document)}
    return tuple(
        Part(
            kind="driver",
            name=driver["name"],
            files=in_image(root, driver["files"]),
            version=driver["version"],
            made_of=by_name.get(driver["package"]),
            patches=patches,
        )
        for driver in document["drivers"]
    )


def in_image(root: Path, paths: Iterable[str]) -> tuple[File, ...]:
    """Those of these paths that the image has, with their digests."""
    found = []
    for path in sorted(paths):
        place = tree.inside(root, path)
        if place.is_symlink():
            found.append((path, ""))
        elif place.is_file():
            found.append((path, file_digest(place)))
    return tuple(found)
