"""Which known vulnerabilities an image has: its bill of materials beside what its distribution published. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from packageurl import PackageURL

from images.artifact.advisories import Advisory
from images.errors import CorruptError

State = Literal["affected", "unknown", "fixed", "not-affected"]

_SIGNED = re.compile(r"linux-signed(?P<flavour>(?:-[a-z0-9.]+?)*?)(?:-(?:amd64|arm64|i386))?")
"""Sources of signed kernels: a shell around what `linux` compiled (Ubuntu: `linux-hwe-6.8`, …), of which advisories
are. Debian's end in the architecture."""
_PROPERTIES = "netboot:source", "netboot:source-version"


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A source package from which something in the image was made, by the version that is in it."""

    name: str
    version: str
    publisher: str
    """As the package's URL has it: `debian`, `ubuntu`, or who else published it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One vulnerability of one source package of the image."""

    id: str
    package: str
    version: str
    state: State
    fixed: str = ""
    """The version with the fix; "": none is published."""
    urgency: str = ""
    note: str = ""


Order = Mapping[tuple[str, str], bool | None]
"""Whether the first version of a pair comes before the second; None: one of them is no version."""


def sources(bill: bytes) -> tuple[Source, ...]:
    """The source packages of an image, by its bill of materials; of compiled drivers too.

    Raises:
        CorruptError: it is no bill as builds write it.
    """
    try:
        return tuple(sorted({_source(part) for part in _packages(json.loads(bill)["components"])}))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CorruptError("the image's bill of materials is not as builds write it: build the image again") from None


def _packages(components: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for component in components:
        if component["type"] == "library":
            yield component
        yield from component.get("pedigree", {}).get("ancestors", ())


def _source(component: Mapping[str, Any]) -> Source:
    properties = {one["name"]: one["value"] for one in component["properties"]}
    name, version = (properties[key] for key in _PROPERTIES)
    if signed := _SIGNED.fullmatch(name):
        name, version = f"linux{signed['flavour']}", component["version"]
    return Source(name, version, PackageURL.from_string(component["purl"]).namespace or "")


def pairs(found: Iterable[Source], advisories: Mapping[str, Iterable[Advisory]]) -> Iterator[tuple[str, str]]:
    """The versions that have to be compared before `judge` can say anything."""
    for source in found:
        for advisory in advisories.get(source.name, ()):
            for since, fixed in advisory.ranges or ():
                yield from ((source.version, version) for version in (since, fixed) if version)


def judge(source: Source, advisory: Advisory, before: Order) -> Verdict:
    """What an advisory means for the version of a source package that is in the image."""
    verdict = Verdict(advisory.id, source.name, source.version, "unknown", urgency=advisory.urgency, note=advisory.note)
    ends = [(source.version, end) for one in advisory.ranges or () for end in one if end]
    if advisory.ranges is None or any(before[pair] is None for pair in ends):
        return verdict
    for since, fixed in advisory.ranges:
        begun = not since or not before[source.version, since]
        if begun and (not fixed or before[source.version, fixed]):
            return replace(verdict, state="affected", fixed=fixed)
    past = [fixed for _, fixed in advisory.ranges if fixed and not before[source.version, fixed]]
    return replace(verdict, state="fixed" if past else "not-affected", fixed=past[-1] if past else "")


def verdicts(
    found: Iterable[Source], advisories: Mapping[str, Iterable[Advisory]], before: Order
) -> tuple[Verdict, ...]:
    """All of them, each once, by package and number; what cannot be told of is before what can."""
    each = {judge(source, advisory, before) for source in found for advisory in advisories.get(source.name, ())}
    return tuple(sorted(each, key=lambda one: (one.package, one.version, _number(one.id), one.state)))


def _number(name: str) -> tuple[object, ...]:
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in name.split("-"))
