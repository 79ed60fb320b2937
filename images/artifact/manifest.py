"""The manifest: what an image is. Its canonical bytes are signed, and their SHA-256 is the image's digest.

The initrd reads the same bytes with sed, so the form is fixed: JSON with sorted keys, no white space, ASCII only, one
newline at the end (`canonical`).
"""

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field, StringConstraints, ValidationError

from images.errors import CorruptError
from images.values.digests import canonical
from images.values.faults import first_fault
from images.values.kernel_arguments import RecipeArgument
from images.values.strict import Strict
from images.values.types import Architecture, Matching, Name, RootFormat, Sha256

ContainerName = Annotated[
    str,
    Matching(
        r"(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9-]+(?=:[0-9]))(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}",
        "must be a container image's full name, registry/name:tag, like localhost/pause:1",
    ),
]

S = TypeVar("S", bound="Signed")
CHUNK_SIZE = 4 * 1024 * 1024
"""Bytes per chunk of the root image: the unit that a machine fetches again when it arrives damaged."""


class Signed(Strict):
    """Base of what is signed: manifests and site bundles. `called` is its name in messages, with the article."""

    called: ClassVar[str]

    def to_bytes(self) -> bytes:
        """The canonical bytes, which are signed."""
        return canonical(self.model_dump(mode="json", by_alias=True))


class Artifact(Strict):
    """One blob of an image: its digest and size in bytes; the root image also has the digest of each chunk."""

    sha256: Sha256
    size: Annotated[int, Field(ge=0)]
    chunks: tuple[Sha256, ...] = ()


class Artifacts(Strict):
    """The blobs of an image: what a machine boots, and the documents about it.

    Iterating gives (name, artifact) of those that are there.
    """

    kernel: Artifact
    initrd: Artifact
    root: Artifact
    packages: Artifact
    """The list of installed packages as JSON: [[name, version, architecture], …]."""
    uki: Artifact | None = None
    """Kernel, initrd and the recipe's arguments in one PE file."""
    config: Artifact | None = None
    """The kernel's configuration, as its package has it."""
    files: Artifact | None = None
    """Every path of the root: what `netboot image diff` compares."""
    sbom: Artifact | None = None
    provenance: Artifact | None = None
    licences: Artifact | None = None

    def __iter__(self) -> Iterator[tuple[str, Artifact]]:  # type: ignore[override]
        return ((name, value) for name in type(self).model_fields if (value := getattr(self, name)) is not None)


class ContainerImage(Strict):
    """A container image that the root brings and loads at boot."""

    name: ContainerName
    digest: Sha256
    """Its id: SHA-256 of its configuration (what `crictl images` shows)."""
    size: Annotated[int, Field(ge=0)]
    """Bytes that it takes in containerd's state, which is memory: its layers as they are stored, and unpacked."""


class Manifest(Signed):
    """What an image is, whole: enough to verify it, to boot it and to say where it came from."""

    called = "a manifest"
    schema_: Annotated[Literal["netboot.dev/manifest/v1"], Field(alias="schema")] = "netboot.dev/manifest/v1"
    name: Name
    distribution: Name
    suite: Name
    architecture: Architecture
    recipe: Sha256
    """Identity of the recipe: hash of the validated recipe and of every step's version."""
    epoch: Annotated[int, Field(ge=0)]
    """Raised by the recipe's author when older images must not boot any more; compared with the site's minimum."""
    created: Annotated[int, Field(ge=0)]
    """Seconds since 1970 of the newest source, never of the build: the same recipe gives the same bytes."""
    kernel_version: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.+~_-]{1,100}$")]
    kernel_arguments: tuple[RecipeArgument, ...] = ()
    ram_mib: Annotated[int, Field(ge=1)]
    """The least memory of a machine that can boot this image, MiB."""
    chunk_size: Literal[4194304] = 4194304
    root_format: RootFormat = "squashfs"
    artifacts: Artifacts
    container_images: tuple[ContainerImage, ...] = ()

    def to_bytes(self) -> bytes:
        """The canonical bytes, which are signed."""
        value = self.model_dump(mode="json", by_alias=True)
        value["artifacts"] = {name: part for name, part in value["artifacts"].items() if part is not None}
        # What came later is left out where it says nothing new, so that manifests of before are in canonical form too.
        if not self.container_images:
            del value["container_images"]
        if self.root_format == "squashfs":
            del value["root_format"]
        return canonical(value)

    @property
    def digest(self) -> str:
        """The image's digest: 64 hexadecimal characters."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a manifest, `docs/manifest.schema.json`; docs/manifest.md says what it cannot."""
    described = Manifest.model_json_schema(by_alias=True, mode="validation")
    required = [*described["required"], "schema", "kernel_arguments", "chunk_size"]
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://netboot.dev/manifest/v1"}
    return about | described | {"required": required}


def read_manifest(data: bytes) -> Manifest:
    """The manifest in `data`, whoever signed it.

    Raises:
        CorruptError: not a manifest of a known version, or not in canonical form.
    """
    return read_signed(data, Manifest)


def read_signed(data: bytes, model: type[S]) -> S:
    """The manifest or bundle in `data`, whoever signed it.

    Raises:
        CorruptError: not one of a known version, or not in canonical form: the initrd could not read it.
    """
    try:
        value = model.model_validate_json(data)
    except ValidationError as error:
        raise CorruptError(f"not {model.called}: {first_fault(error)}") from None
    if value.to_bytes() != data:
        raise CorruptError(f"not {model.called}: its bytes are not in canonical form")
    return value
