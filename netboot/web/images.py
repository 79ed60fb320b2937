"""`/v1/images[/<digest>[/packages|sbom|diff|uses]]`: what lies in the store, what it is made of, and who has to do with
it."""

from operator import attrgetter
from typing import Annotated

from flask import Response
from pydantic import Field

from images.artifact.diff import diff, read_packages
from images.artifact.manifest import Manifest
from images.errors import ImageError
from images.values.strict import Strict
from images.values.types import SHA256, Architecture, Sha256
from netboot.lifecycle.errors import BadClaimError
from netboot.lifecycle.revocation import Uses, looked_up, uses
from netboot.web import inputs
from netboot.web.binding import Shown
from netboot.web.channels import retired
from netboot.web.dependencies import dependencies
from netboot.web.pages import PageAsked, Paged, page

SBOM = "application/vnd.cyclonedx+json"


class ImageListed(Strict):
    """One of the store. `added_ms`: when it came there; nothing about it has been verified."""

    image: Sha256
    name: str
    added_ms: int
    revoked: bool


class Images(Paged):
    """The newest first."""

    images: tuple[ImageListed, ...]


class ImageShown(Shown):
    """An image. `created_ms`: of its newest source; `ram_mib`: the least memory of a machine that boots it; `bytes`: of
    each of its parts; `problem`: why it cannot be booted here, null where it can."""

    image: Sha256
    name: str
    distribution: str
    suite: str
    architecture: Architecture
    kernel_version: str
    created_ms: int
    ram_mib: int
    epoch: int
    bytes: dict[str, int]
    container_images: tuple[str, ...]
    revoked: bool
    problem: str | None


class PackageShown(Strict):
    """A package, as dpkg has it."""

    name: str
    version: str
    architecture: str


class PackagesShown(Paged):
    """In the order of their names."""

    image: Sha256
    packages: tuple[PackageShown, ...]


class DiffAsked(Strict):
    """`with`: the digest of the image that is the older one."""

    older: Annotated[Sha256, Field(alias="with")]


class Difference(Shown):
    """What is otherwise in `image` than in `with`. Facts and sizes (bytes; null: no such part) from what it was to what
    it is; packages by `name:architecture`."""

    image: Sha256
    older: Sha256 = Field(serialization_alias="with")
    facts: dict[str, tuple[str, str]]
    sizes: dict[str, tuple[int | None, int | None]]
    added: dict[str, str]
    removed: dict[str, str]
    changed: dict[str, tuple[str, str]]


def listed(query: PageAsked) -> Images:
    """Every image of the store."""
    deps, revoked = dependencies(), _revoked()
    whole = [
        ImageListed(image=each.digest, name=each.name, added_ms=each.added_ms, revoked=each.digest in revoked)
        for each in deps.repository.images()
    ]
    found, more = page(query, whole, attrgetter("image"))
    return Images(images=tuple(found), next_page=more)


def shown(digest: str) -> ImageShown:
    """One image, by its whole digest.

    Raises:
        BadClaimError: not a digest. ImageError: it is not there, or cannot be read.
    """
    manifest = _manifest(digest)
    told = ("name", "distribution", "suite", "architecture", "kernel_version", "ram_mib", "epoch")
    return ImageShown(
        image=digest,
        **{name: getattr(manifest, name) for name in told},
        created_ms=manifest.created * 1000,
        bytes={name: artifact.size for name, artifact in manifest.artifacts},
        container_images=tuple(each.name for each in manifest.container_images),
        revoked=digest in _revoked(),
        problem=_problem(digest),
    )


def packages(digest: str, query: PageAsked) -> PackagesShown:
    """What it is made of.

    Raises:
        BadClaimError: not a digest. ImageError: it is not there, or cannot be read.
    """
    whole = []
    for name, version in sorted(_packages(digest).items()):
        package, _, architecture = name.rpartition(":")
        whole.append(PackageShown(name=package, version=version, architecture=architecture))
    found, more = page(query, whole, lambda each: f"{each.name}:{each.architecture}")
    return PackagesShown(image=digest, packages=tuple(found), next_page=more)


def sbom(digest: str) -> Response:
    """Its bill of materials (CycloneDX), byte by byte as it was signed.

    Raises:
        BadClaimError: not a digest. ImageError: it is not there, has none, or cannot be read.
    """
    inputs.only(())
    _manifest(digest)
    return Response(dependencies().repository.document(digest, "sbom"), mimetype=SBOM)


def compared(digest: str, query: DiffAsked) -> Difference:
    """What is otherwise in it than in an older one.

    Raises:
        BadClaimError: not a digest. ImageError: one of the two is not there, or cannot be read.
    """
    old, new = _manifest(query.older), _manifest(digest)
    found = diff(old, new, _packages(query.older), _packages(digest))
    packages = {"added": found.added, "removed": found.removed, "changed": found.changed}
    return Difference(image=digest, older=query.older, facts=found.facts, sizes=found.sizes, **packages)


def used(digest: str) -> Uses:
    """Channels that give it to machines, machines that boot it next, and those that run it; whether it is here or not.

    Raises:
        BadClaimError: not a digest.
    """
    deps = dependencies()
    return uses(_whole(digest), deps.live.view().snapshot, deps.repository, deps.states.machines(), retired())


def _whole(digest: str) -> str:
    if not SHA256.fits(digest):
        raise BadClaimError(f"not an image: {SHA256.message}")
    return digest


def _manifest(digest: str) -> Manifest:
    return dependencies().repository.image(_whole(digest))


def _packages(digest: str) -> dict[str, str]:
    return read_packages(dependencies().repository.document(_whole(digest), "packages"))


def _revoked() -> frozenset[str]:
    deps = dependencies()
    return frozenset(looked_up(deps.live.view().snapshot.revocations, deps.repository).images)


def _problem(digest: str) -> str | None:
    """By the signature, and by the sizes of what lies there."""
    try:
        dependencies().repository.verified(digest)
    except ImageError as error:
        return str(error)
    return None
