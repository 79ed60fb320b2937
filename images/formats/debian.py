"""What dpkg and apt know of the packages of a tree: status(5) of what is installed, and apt's lists of what there was.

The lists of a distribution have 50 MB and more: they are mapped and searched, never held.
"""

import mmap
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

Identity = tuple[str, str, str]
"""Name, version and architecture of a package."""

_FIELD = re.compile(r"^([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)
_PACKAGE = re.compile(rb"^Package: ([^\n]+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Package:
    """One installed package, and the source package that it was built from."""

    name: str
    version: str
    architecture: str
    source: str
    source_version: str
    maintainer: str = ""
    homepage: str = ""

    @property
    def identity(self) -> Identity:
        """Name, version and architecture: what apt's lists are searched by."""
        return self.name, self.version, self.architecture


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a package came from, by a list that apt verified: who published it, and the digest of its .deb."""

    publisher: str
    sha256: str
    path: str
    """Of the .deb below the mirror's address."""
    size: int


def paragraphs(text: str) -> Iterator[dict[str, str]]:
    """The paragraphs of a deb822(5) text; later lines of a field are kept as they are. What is no field is left out."""
    for paragraph in re.split(r"\n[ \t]*\n", text):
        fields = dict(_FIELD.findall(paragraph))
        if fields:
            yield fields


def installed(status: str) -> tuple[Package, ...]:
    """The installed packages of a dpkg status file, sorted by name, version and architecture."""
    packages = (
        _package(fields) for fields in paragraphs(status) if fields.get("Status", "").split()[2:] == ["installed"]
    )
    return tuple(sorted(packages, key=lambda package: package.identity))


def _package(fields: Mapping[str, str]) -> Package:
    source, _, version = fields.get("Source", fields["Package"]).partition(" ")
    return Package(
        name=fields["Package"],
        version=fields["Version"],
        architecture=fields["Architecture"],
        source=source,
        source_version=version.strip("() ") or fields["Version"],
        maintainer=fields.get("Maintainer", ""),
        homepage=fields.get("Homepage", ""),
    )


def origins(lists: Path, identities: frozenset[Identity]) -> dict[Identity, tuple[Origin, ...]]:
    """Where each wanted package is to be had, by apt's lists (`/var/lib/apt/lists`): several where mirrors differ."""
    by_identity: dict[Identity, list[Origin]] = {}
    names = frozenset(name.encode() for name, _, _ in identities)
    for path in sorted(lists.glob("*_Packages")):
        publisher = _publisher(path)
        for paragraph in _matching(path, names):
            fields = next(paragraphs(paragraph), {})
            identity = fields.get("Package", ""), fields.get("Version", ""), fields.get("Architecture", "")
            if identity in identities and "SHA256" in fields:
                size = fields.get("Size", "")
                origin = Origin(
                    publisher, fields["SHA256"], fields.get("Filename", ""), int(size) if size.isdecimal() else 0
                )
                known = by_identity.setdefault(identity, [])
                if origin.sha256 not in {other.sha256 for other in known}:  # main and security have the same file
                    known.append(origin)
    return {identity: tuple(known) for identity, known in by_identity.items()}


def _matching(path: Path, names: frozenset[bytes]) -> Iterator[str]:
    """The paragraphs of a list that are about packages of these names."""
    if path.stat().st_size == 0:
        return  # cannot be mapped
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for match in _PACKAGE.finditer(data):
            if match[1].strip() in names:
                end = data.find(b"\n\n", match.start())
                yield data[match.start() : len(data) if end < 0 else end].decode(errors="replace")


def _publisher(packages: Path) -> str:
    """The `Origin:` of the release file that a list belongs to: apt names both by the mirror's address."""
    releases = [
        path for path in packages.parent.glob("*_InRelease") if packages.name.startswith(path.name[: -len("InRelease")])
    ]
    if not releases:
        return ""
    text = max(releases, key=lambda path: len(path.name)).read_text(encoding="utf-8", errors="replace")
    origin = re.search(r"^Origin:[ \t]*(.+)$", text, re.MULTILINE)
    return origin[1].strip() if origin else ""
