"""The bill of materials: CycloneDX 1.6 as JSON, by the CycloneDX project's own library.

Same packages, same bytes: its serial number is derived from the content, its time is the image's, its keys are sorted.
"""

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from types import MappingProxyType

from cyclonedx.model import AttachedText, HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType, Diff, Patch, PatchClassification, Pedigree
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from images.artifact.manifest import ContainerImage
from images.build.documents.licences import Licence, atoms, spdx
from images.build.documents.parts import Kind, Part
from images.formats.debian import Identity, Origin, Package
from images.values.digests import canonical

_TYPES: Mapping[Kind, ComponentType] = {
    "driver": ComponentType.DEVICE_DRIVER,
    "application": ComponentType.APPLICATION,
    "file": ComponentType.FILE,
}
NO_TOOLS: Mapping[str, str] = MappingProxyType({})
NO_LIBRARIES = NO_TOOLS
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://netboot.dev/sbom")


@dataclass(frozen=True, slots=True)
class Subject:
    """What the bill is about: the image's name, its recipe's identity, what it is made from, its time (seconds)."""

    name: str
    recipe: str
    distribution: str
    suite: str
    architecture: str
    created: int


def sbom(
    subject: Subject,
    packages: Iterable[Package],
    origins: Mapping[Identity, tuple[Origin, ...]],
    licences: Mapping[Identity, Licence],
    containers: Iterable[ContainerImage] = (),
    parts: Iterable[Part] = (),
    tools: Mapping[str, str] = NO_TOOLS,
    libraries: Mapping[str, str] = NO_LIBRARIES,
) -> bytes:
    """The bill: each package, container image and part that no package brought is a component of the image.

    `tools`: what made the image's bytes, by name, and what each says of its version; `libraries`: of Python, from PyPI,
    their versions by their names.
    """
    components = [
        component(subject, package, origins.get(package.identity, ()), licences.get(package.identity))
        for package in packages
    ]
    components += map(_container, containers)
    components += (_part(subject, part) for part in parts)
    components += (_library(name, libraries[name]) for name in sorted(libraries))
    whole = Component(
        type=ComponentType.OPERATING_SYSTEM,
        name=subject.name,
        version=subject.recipe,
        bom_ref="image",
        properties=[
            Property(name="netboot:distribution", value=subject.distribution),
            Property(name="netboot:suite", value=subject.suite),
            Property(name="netboot:architecture", value=subject.architecture),
        ],
    )
    made_by = [Component(type=ComponentType.APPLICATION, name=name, version=tools[name]) for name in sorted(tools)]
    bom = Bom(
        components=components,
        metadata=BomMetaData(
            component=whole,
            timestamp=datetime.fromtimestamp(subject.created, UTC),
            tools=ToolRepository(components=made_by),
        ),
        serial_number=uuid.UUID(int=0),
    )
    bom.register_dependency(whole, components)
    value = json.loads(JsonV1Dot6(bom).output_as_string())
    del value["serialNumber"]
    value["serialNumber"] = uuid.uuid5(_NAMESPACE, canonical(value).decode()).urn
    return canonical(value)


def component(subject: Subject, package: Package, origins: tuple[Origin, ...], licence: Licence | None) -> Component:
    """A package as a component. Its hashes are those of the .deb files that it may have been unpacked from."""
    url = purl(package, origins[0].publisher if origins else "", subject)
    return Component(
        type=ComponentType.LIBRARY,
        name=package.name,
        version=package.version,
        bom_ref=url.to_string(),
        purl=url,
        publisher=package.maintainer or None,
        licenses=[_licence(name) for name in sorted({atom for name in licence.names for atom in atoms(name)})]
        if licence
        else (),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=origin.sha256) for origin in origins],
        properties=[
            Property(name="netboot:architecture", value=package.architecture),
            Property(name="netboot:source", value=package.source),
            Property(name="netboot:source-version", value=package.source_version),
        ],
    )


def purl(package: Package, publisher: str, subject: Subject) -> PackageURL:
    """A package's URL (purl-spec, type deb). Its namespace is who published it: not all are the distribution's.

    `upstream` is what scanners for vulnerabilities look advisories up by, for those name source packages.
    """
    namespace = re.sub(r"[^a-z0-9.+-]+", "-", publisher.lower()).strip("-") or subject.distribution
    qualifiers = {"arch": package.architecture, "distro": subject.suite}
    if (package.source, package.source_version) != (package.name, package.version):
        same = package.source_version == package.version
        qualifiers["upstream"] = package.source if same else f"{package.source}@{package.source_version}"
    return PackageURL("deb", namespace, package.name, package.version, qualifiers)


def _container(image: ContainerImage) -> Component:
    name, _, tag = image.name.rpartition(":")
    return Component(
        type=ComponentType.CONTAINER,
        name=name,
        version=tag,
        bom_ref=f"container:{image.name}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=image.digest)],
    )


def _library(name: str, version: str) -> Component:
    """A library of Python; its URL as purl-spec has those of type pypi."""
    url = PackageURL("pypi", None, name.lower().replace("_", "-"), version)
    return Component(type=ComponentType.LIBRARY, name=name, version=version, bom_ref=url.to_string(), purl=url)


def _part(subject: Subject, part: Part) -> Component:
    """A driver with the package of its sources as ancestor and its patches in full; files below what they are of."""
    single = part.kind == "file"
    return Component(
        type=_TYPES[part.kind],
        name=part.name,
        version=part.version or None,
        bom_ref=f"{part.kind}:{part.name}",
        hashes=[_hash(digest) for _, digest in part.files if single and digest],
        components=[_file(part, path, digest) for path, digest in part.files if not single],
        pedigree=_pedigree(subject, part) if part.made_of or part.patches else None,
    )


def _pedigree(subject: Subject, part: Part) -> Pedigree:
    ancestors = []
    if part.made_of:
        ancestors = [component(subject, part.made_of.package, part.made_of.origins, None)]
        ancestors[0].bom_ref.value = f"source of {part.name}"
    return Pedigree(
        ancestors=ancestors,
        patches=[_patch(text) for _, text in part.patches],
        notes="; ".join(f"{name} sha256:{sha256(text).hexdigest()}" for name, text in part.patches) or None,
    )


def _patch(text: bytes) -> Patch:
    return Patch(
        type=PatchClassification.UNOFFICIAL, diff=Diff(text=AttachedText(content=text.decode(errors="replace")))
    )


def _file(part: Part, path: str, digest: str) -> Component:
    reference = f"{part.kind}:{part.name}:{path}"
    return Component(type=ComponentType.FILE, name=path, bom_ref=reference, hashes=[_hash(digest)] if digest else ())


def _hash(digest: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=digest)


def _licence(name: str) -> DisjunctiveLicense:
    known = spdx(name)
    return DisjunctiveLicense(id=known) if known else DisjunctiveLicense(name=name)
