"""Archives of container images, read before they go into a root: which images, how large, and whether they are whole.

Two forms, as containerd reads them (`ctr images import`): an OCI layout (`oci-layout`, `index.json`, `blobs/sha256/…`),
and what `docker save` writes (`manifest.json`).
"""

import gzip
import hashlib
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Any, NoReturn, TypeVar, cast

from pydantic import BaseModel, StringConstraints, TypeAdapter, ValidationError

from images.artifact.manifest import ContainerImage
from images.errors import RecipeError
from images.values.digests import PLACE, file_digest
from images.values.faults import first_fault
from images.values.types import Architecture

T = TypeVar("T")
NAME = "io.containerd.image.name"
"""The annotation by which containerd names an image of an OCI layout."""
_MOST_JSON = 4 << 20
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Archive:
    """A tar file of container images, and what is in it."""

    path: Path = field(metadata=PLACE)
    sha256: str
    images: tuple[ContainerImage, ...]


class _Platform(BaseModel):
    architecture: str = ""


class _Descriptor(BaseModel):
    digest: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
    mediaType: str = ""  # noqa: N815 - the specification's name
    platform: _Platform = _Platform()
    annotations: dict[str, str] = {}

    @property
    def blob(self) -> str:
        return f"blobs/sha256/{self.digest.removeprefix('sha256:')}"


class _Manifest(BaseModel):
    """An OCI manifest (config, layers) or an index (manifests)."""

    config: _Descriptor | None = None
    layers: list[_Descriptor] = []
    manifests: list[_Descriptor] = []


class _Config(BaseModel):
    architecture: str = ""
    os: str = ""


class _Saved(BaseModel):
    """An image as `docker save` describes it."""

    Config: str
    RepoTags: list[str] | None = None
    Layers: list[str]


def read(path: Path, architecture: Architecture) -> Archive:
    """Read an archive whole.

    Raises:
        RecipeError: not such an archive, damaged, for other machines only, or with an image that has no full name.
    """
    try:
        with tarfile.open(path, "r:") as tar:
            members = {member.name.removeprefix("./"): member for member in tar if not member.isdir()}
            reader = _Reader(path, tar, members, architecture)
            images = tuple(reader.oci() if "oci-layout" in members else reader.docker())
    except tarfile.TarError as error:
        raise RecipeError(f"container_images: {path} is no tar file, or a compressed one: {error}") from None
    except OSError as error:
        raise RecipeError(f"container_images: {path} cannot be read: {error.strerror or error}") from None
    if not images:
        raise RecipeError(f"container_images: {path} has no image for linux on {architecture}")
    return Archive(path, file_digest(path), images)


class _Reader:
    """One open archive; whatever is wrong with it is a RecipeError."""

    def __init__(
        self, path: Path, tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo], architecture: Architecture
    ) -> None:
        self._path, self._tar, self._members, self._architecture = path, tar, members, architecture

    def oci(self) -> Iterator[ContainerImage]:
        """The images of an OCI layout (image-layout.md of the OCI image specification)."""
        for entry in self._json("index.json", _Manifest).manifests:
            manifest = self._manifest(entry)
            if manifest is None or manifest.config is None or not self._fits(manifest.config.blob):
                continue
            if NAME not in entry.annotations:
                self._refuse(f"has an image without a name (the annotation {NAME} in index.json)")
            for layer in manifest.layers:
                if layer.mediaType.endswith("zstd"):
                    self._refuse("has layers compressed with zstd; write it with gzip, or uncompressed")
            layers = [layer.blob for layer in manifest.layers]
            yield self._image(entry.annotations[NAME], manifest.config.digest.removeprefix("sha256:"), layers)

    def docker(self) -> Iterator[ContainerImage]:
        """The images that `docker save` wrote."""
        if "manifest.json" not in self._members:
            self._refuse("is neither an OCI layout nor of docker save's form")
        for entry in self._json("manifest.json", list[_Saved]):
            if not self._fits(entry.Config):
                continue
            if not entry.RepoTags:
                self._refuse("has an image without a name (RepoTags in manifest.json)")
            digest, _, _ = self._weigh(entry.Config)
            yield from (self._image(name, digest, entry.Layers) for name in entry.RepoTags)

    def _manifest(self, entry: _Descriptor, depth: int = 0) -> _Manifest | None:
        """The manifest that a descriptor leads to, through an index for several machines if there is one."""
        if entry.platform.architecture not in {self._architecture, ""} or depth > 2:
            return None
        document = self._json(entry.blob, _Manifest)
        if not document.manifests:
            return document
        inner = (self._manifest(item, depth + 1) for item in document.manifests)
        return next((manifest for manifest in inner if manifest is not None), None)

    def _fits(self, config: str) -> bool:
        platform = self._json(config, _Config)
        return (platform.os, platform.architecture) == ("linux", self._architecture)

    def _image(self, name: str, digest: str, layers: list[str]) -> ContainerImage:
        size = 0
        for layer in layers:
            actual, packed, unpacked = self._weigh(layer)
            if re.fullmatch(r"blobs/sha256/[0-9a-f]{64}", layer) and not layer.endswith(actual):
                self._refuse(f"is damaged: {layer} is not what its name says")
            size += packed + unpacked
        try:
            return ContainerImage(name=name, digest=digest, size=size)
        except ValidationError as error:
            self._refuse(f"has the image {name!r:.200}: {first_fault(error).message}")

    def _weigh(self, name: str) -> tuple[str, int, int]:
        """Of a file of the archive: SHA-256, bytes as it is, bytes unpacked."""
        with self._open(name) as file:
            digest = hashlib.file_digest(cast(Any, file), "sha256").hexdigest()
            packed = file.seek(0, 2)
            file.seek(0)
            if file.read(2) != b"\x1f\x8b":
                return digest, packed, packed
            file.seek(0)
            try:
                source = gzip.GzipFile(fileobj=file)
                return digest, packed, sum(map(len, iter(lambda: source.read(_BLOCK), b"")))
            except (EOFError, zlib.error, gzip.BadGzipFile):
                self._refuse(f"is damaged: {name} cannot be unpacked")

    def _json(self, name: str, kind: type[T]) -> T:
        with self._open(name) as file:
            try:
                return TypeAdapter(kind).validate_json(file.read(_MOST_JSON))
            except ValidationError:
                self._refuse(f"is damaged: {name} is not what it must be")

    def _open(self, name: str) -> IO[bytes]:
        try:
            file = self._tar.extractfile(self._members[name])
        except KeyError:  # extractfile's own: a link to what is not there
            file = None
        return file if file is not None else self._refuse(f"is not whole: it lacks {name}")

    def _refuse(self, what: str) -> NoReturn:
        raise RecipeError(f"container_images: {self._path} {what}")
