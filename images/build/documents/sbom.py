"""The bill of materials: CycloneDX 1.6 as JSON, by the CycloneDX project's own library.

Same packages, same bytes: its serial number is derived from the content, its time is the image's, its keys are sorted.
"""

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from images.artifact.manifest import ContainerImage
from images.build.documents.licences import Licence, atoms, spdx
from images.formats.debian import Identity, Origin, Package
from images.values.digests import canonical

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
) -> bytes:
    """The bill: every package and every container image as a component of the image."""
    components = [
        component(subject, package, origins.get(package.identity, ()), licences.get(package.identity))
        for package in packages
    ]
    components += map(_container, containers)
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
    bom = Bom(
        components=components,
        metadata=BomMetaData(component=whole, timestamp=datetime.fromtimestamp(subject.created, UTC)),
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


def _licence(name: str) -> DisjunctiveLicense:
    known = spdx(name)
    return DisjunctiveLicense(id=known) if known else DisjunctiveLicense(name=name)
