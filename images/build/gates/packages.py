"""Facts of packages: what is installed, and what signed sources had."""

import hashlib
import mmap
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from images.build.gates.facts import Package, Sources

_FIELD = re.compile(rb"^(Package|Version|Architecture): *(.*)$", re.MULTILINE)
_FIRST = re.compile(rb"^Package: *(\S+)", re.MULTILINE)


def installed(status: bytes) -> tuple[Package, ...]:
    """Packages of a dpkg status file whose files are there (dpkg(1): not those of state config-files)."""
    there = (paragraph for paragraph in status.split(b"\n\n") if b"\nStatus: " in paragraph and _unpacked(paragraph))
    return tuple(sorted(_package(paragraph) for paragraph in there))


def _unpacked(paragraph: bytes) -> bool:
    state = re.search(rb"^Status: \S+ \S+ (\S+)", paragraph, re.MULTILINE)
    return state is not None and state[1] not in (b"config-files", b"not-installed")


def _package(paragraph: bytes) -> Package:
    fields = {key: value.strip().decode(errors="replace") for key, value in _FIELD.findall(paragraph)}
    return fields.get(b"Package", ""), fields.get(b"Version", ""), fields.get(b"Architecture", "")


def read_lists(lists: Path, releases: Iterable[str], names: Iterable[str]) -> Sources:
    """What the lists in apt's folder have of `names`, and lists that none of `releases` (SHA-256) vouches for.

    A release vouches for a list by the list's digest (deb.debian.org's RepositoryFormat); where a repository names its
    lists by their packed forms only, apt compared those as it fetched them, and the name is all that is left to see.
    """
    trusted = set(releases)
    vouching = {path.name.removesuffix("InRelease"): path.read_bytes() for path in sorted(lists.glob("*_InRelease"))}
    signed = {prefix: text for prefix, text in vouching.items() if hashlib.sha256(text).hexdigest() in trusted}
    encoded = {name.encode() for name in names}
    packages: set[Package] = set()
    strangers = []
    for path in sorted(path for path in lists.glob("*_Packages") if path.stat().st_size):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            texts = (
                (path.name.removeprefix(prefix), text)
                for prefix, text in signed.items()
                if path.name.startswith(prefix)
            )
            if any(_vouches(text, name, data) for name, text in texts):
                packages |= set(_of_names(data, encoded))
            else:
                strangers.append(path.name.rpartition("_dists_")[2])
    return Sources(frozenset(packages), tuple(strangers))


def _vouches(release: bytes, name: str, data: mmap.mmap) -> bool:
    """`name`: a list's path in its repository, with apt's `_` for `/`."""
    path = rb"(?:\./)?" + re.escape(name).replace("_", "[_/]").encode()
    digests = re.findall(rb"^ ([0-9a-f]{64}) +\d+ " + path + rb"$", release, re.MULTILINE)
    if digests:
        return hashlib.sha256(data).hexdigest().encode() in digests
    return re.search(rb"^ [0-9a-f]{64} +\d+ " + path + rb"\.\w+$", release, re.MULTILINE) is not None


def _of_names(data: mmap.mmap, names: set[bytes]) -> Iterator[Package]:
    """Mapped and searched, not held: a distribution's list has 50 MB and more."""
    for match in _FIRST.finditer(data):
        if match[1] in names:
            end = data.find(b"\n\n", match.start())
            yield _package(data[match.start() : len(data) if end < 0 else end])
