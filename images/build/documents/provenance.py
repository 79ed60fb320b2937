"""Where an image came from: an in-toto Statement (v1) with SLSA's provenance predicate (v1).

Not signed by itself: its digest is in the manifest, which is. Nothing in it is of one build (no time, no host's name,
no random number), so the same recipe, sources and versions of tools have the same provenance.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from images.artifact.manifest import Artifact
from images.build.documents.parts import Part, Source
from images.build.documents.sbom import Subject, purl
from images.formats.debian import Identity, Origin, Package
from images.values.digests import canonical

BUILD_TYPE = "https://netboot.dev/image-build/v1"
BUILDER = "https://netboot.dev/netboot"
Release = tuple[str, str, str]
"""A mirror's address ("file:" for a folder of the builder's), a suite, and the SHA-256 of its InRelease file."""


def predicate(
    subject: Subject,
    recipe: Mapping[str, Any],
    steps: Sequence[tuple[str, int, str]],
    tools: Mapping[str, str],
    dependencies: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """SLSA's predicate: the merged recipe, each step's name, version and identity, versions of tools, what went in."""
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"recipe": dict(recipe), "identity": subject.recipe},
            "internalParameters": {
                "steps": [
                    {"name": name, "version": version, "identity": identity} for name, version, identity in steps
                ],
                "tools": [{"name": name, "version": version} for name, version in sorted(tools.items())],
            },
            "resolvedDependencies": list(dependencies),
        },
        "runDetails": {"builder": {"id": BUILDER}},
    }


def release_dependencies(releases: Iterable[Release]) -> list[dict[str, Any]]:
    """The release files that apt verified, each with the key that the recipe names for it."""
    return [
        {
            "name": f"InRelease of {suite}",
            "uri": url if url.startswith("file:") else f"{url.rstrip('/')}/{_place(suite)}InRelease",
            "digest": {"sha256": digest},
        }
        for url, suite, digest in releases
    ]


def _place(suite: str) -> str:
    return suite.lstrip("/") if suite.endswith("/") else f"dists/{suite}/"


def package_dependencies(
    subject: Subject, packages: Iterable[Package], origins: Mapping[Identity, tuple[Origin, ...]]
) -> list[dict[str, Any]]:
    """The packages, each with its .deb's digest where apt's lists tell one, and with the source it was built from."""
    return [_dependency(subject, package, origins.get(package.identity, ())) for package in packages]


def part_dependencies(subject: Subject, parts: Collection[Part], compiled_by: Iterable[Source]) -> list[dict[str, Any]]:
    """What no package brought, each file and patch with its digest; and the root in which drivers were compiled."""
    files = [
        {"name": path, "digest": {"sha256": digest}, "annotations": {"part": part.name, "kind": part.kind}}
        for part in parts
        if part.kind != "driver"  # its files came of the build: what went in is below
        for path, digest in part.files
        if digest
    ]
    patches = {name: text for part in parts for name, text in part.patches}
    return [
        *files,
        *(
            {"name": name, "digest": {"sha256": sha256(text).hexdigest()}, "annotations": {"kind": "patch"}}
            for name, text in patches.items()
        ),
        *(_compiler(_dependency(subject, source.package, source.origins)) for source in compiled_by),
    ]


def _compiler(dependency: dict[str, Any]) -> dict[str, Any]:
    return dependency | {"annotations": dependency["annotations"] | {"kind": "compiled the drivers"}}


def _dependency(subject: Subject, package: Package, origins: tuple[Origin, ...]) -> dict[str, Any]:
    dependency: dict[str, Any] = {
        "uri": purl(package, origins[0].publisher if origins else "", subject).to_string(),
        "annotations": {"source": package.source, "source_version": package.source_version},
    }
    if len(origins) == 1:
        dependency["digest"] = {"sha256": origins[0].sha256}
        dependency["annotations"]["path"] = origins[0].path
    elif origins:  # apt took one of these, and does not say which
        dependency["annotations"]["sha256_one_of"] = [origin.sha256 for origin in origins]
    return dependency


def statement(artifacts: Mapping[str, Artifact], predicate: Mapping[str, Any]) -> bytes:
    """The whole statement about these artifacts of an image, in canonical form."""
    subjects = [{"name": name, "digest": {"sha256": artifact.sha256}} for name, artifact in sorted(artifacts.items())]
    return canonical(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": subjects,
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": dict(predicate),
        }
    )
