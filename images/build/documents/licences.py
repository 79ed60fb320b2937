"""Licences by package, from /usr/share/doc/<package>/copyright, which Debian's policy asks of each (§ 12.5).

Where that file is machine-readable (DEP-5, "copyright-format 1.0") its `License:` fields are taken as they stand; else
only the texts of /usr/share/common-licenses that it refers to are named: a hint to a reader, not a licence.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from images.formats import tree
from images.formats.debian import Package, paragraphs
from images.values.digests import canonical

_COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z0-9.+-]*[A-Za-z0-9+])")
_FORMAT = re.compile(r"^Format(?:-Specification)?:[ \t]*\S*(?:copyright-format|dep5|DEP-?5)", re.MULTILINE)

SPDX = {
    "apache-2": "Apache-2.0",
    "apache-2.0": "Apache-2.0",
    "artistic": "Artistic-1.0",
    "artistic-2": "Artistic-2.0",
    "artistic-2.0": "Artistic-2.0",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "bsd-4-clause": "BSD-4-Clause",
    "cc0-1.0": "CC0-1.0",
    "expat": "MIT",
    "isc": "ISC",
    "mpl-1.1": "MPL-1.1",
    "mpl-2.0": "MPL-2.0",
    "openssl": "OpenSSL",
    "zlib": "Zlib",
}
"""DEP-5's short names (lower case) that mean one licence of SPDX's list. "MIT" is not here: there it is ambiguous."""
_GNU = re.compile(r"(A?GPL|LGPL|GFDL)-([0-9](?:\.[0-9])?)(\+?)", re.IGNORECASE)
_ATOMS = re.compile(r"\s*(?:,?\s+(?:and|or)\s+|,|\|)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Licence:
    """What a package says of its licence. `of`: the package whose copyright file it is, None where there is no file."""

    package: Package
    of: str | None = None
    form: Literal["dep-5", "text", "none"] = "none"
    names: tuple[str, ...] = ()
    """The machine-readable file's `License:` fields, each once, sorted."""
    texts: tuple[str, ...] = ()
    """Texts of /usr/share/common-licenses that the file refers to, sorted."""

    def facts(self) -> dict[str, Any]:
        """The package's line of the listing, before it is written as JSON."""
        return {
            "package": self.package.name,
            "version": self.package.version,
            "architecture": self.package.architecture,
            "source": self.package.source,
            "file": self.of and f"/usr/share/doc/{self.of}/copyright",
            "form": self.form,
            "licences": list(self.names),
            "refers_to": list(self.texts),
        }


def read(root: Path, packages: tuple[Package, ...]) -> tuple[Licence, ...]:
    """The licences of a tree's packages.

    A package's folder may be a link to that of another of the same source (policy § 12.3); mmdebstrap leaves links of
    /usr/share/doc out, so a package without a file has the file of another of its source and version.
    """
    by_package = {package.identity: _read(root, package) for package in packages}
    by_source: dict[tuple[str, str], Licence] = {}
    for package in packages:
        if by_package[package.identity].of is not None:
            by_source.setdefault((package.source, package.source_version), by_package[package.identity])
    return tuple(
        by_package[package.identity]
        if by_package[package.identity].of is not None
        else _as(package, by_source.get((package.source, package.source_version)))
        for package in packages
    )


def listing(licences: tuple[Licence, ...]) -> bytes:
    """The document: a line of JSON for each package."""
    return b"".join(canonical(licence.facts()) for licence in licences)


def atoms(name: str) -> list[str]:
    """The licences that a `License:` field names: `GPL-2+ or BSD-3-clause` has two. Exceptions stay with theirs."""
    return [atom for part in _ATOMS.split(name) if (atom := part.strip())]


def spdx(atom: str) -> str | None:
    """The SPDX identifier of a short name, None where none is known for certain."""
    gnu = _GNU.fullmatch(atom)
    if gnu is None:
        return SPDX.get(atom.lower())
    family, version, later = gnu[1].upper(), gnu[2], gnu[3]
    version = version if "." in version else f"{version}.0"
    known = {"GPL": ("1.0", "2.0", "3.0"), "LGPL": ("2.0", "2.1", "3.0"), "AGPL": ("1.0", "3.0")}
    if version not in known.get(family, ()):
        return None
    return f"{family}-{version}-{'or-later' if later else 'only'}"


def _as(package: Package, licence: Licence | None) -> Licence:
    if licence is None:
        return Licence(package)
    return Licence(package, licence.of, licence.form, licence.names, licence.texts)


def _read(root: Path, package: Package) -> Licence:
    path = tree.inside(root, f"/usr/share/doc/{package.name}/copyright")
    if not path.is_file() or path.is_symlink():
        return Licence(package)
    text = path.read_text(encoding="utf-8", errors="replace")
    texts = tuple(sorted(set(_COMMON.findall(text))))
    if not _FORMAT.search(text.partition("\n\n")[0]):
        return Licence(package, package.name, "text", texts=texts)
    fields = (fields.get("License", "") for fields in paragraphs(text))
    names = {" ".join(field.partition("\n")[0].split()) for field in fields}
    return Licence(package, package.name, "dep-5", tuple(sorted(names - {""})), texts)
