"""An image as an OCI artifact: the manifest that a registry keeps, as ORAS writes it. Pure.

The registry's manifest only says where things are. What they must be says our own signed manifest, which is one of its
layers: nothing else in here is believed. Form: image-spec 1.1, "Guidelines for Artifact Usage".
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from images.artifact import signing
from images.artifact.manifest import Artifact, Manifest
from images.registry.errors import RegistryError
from images.store.pointers import is_digest
from images.values.digests import canonical

ARTIFACT_TYPE = "application/vnd.netboot.image.v1"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
MANIFEST = "application/vnd.netboot.manifest.v1+json"
SIGNATURE = "application/vnd.netboot.signature.v1"
EMPTY = b"{}"
"""The configuration of an artifact that has none: image-spec, "empty descriptor"."""
_EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
_TITLE = "org.opencontainers.image.title"
MOST_MANIFEST = 4 << 20
MOST_SIGNATURE = 2048 * signing.MOST


class Descriptor(NamedTuple):
    """A blob of a registry: SHA-256 in hexadecimal, bytes."""

    sha256: str
    size: int


class Signed(NamedTuple):
    """Where the two files are that say what the image is."""

    manifest: Descriptor
    signature: Descriptor


def blob_type(name: str) -> str:
    """The media type of an artifact: `application/vnd.netboot.root.v1`."""
    return f"application/vnd.netboot.{name}.v1"


def write_artifact(manifest: bytes, signature: bytes, value: Manifest) -> bytes:
    """The registry's manifest of an image: the same bytes for the same image and signature."""
    layers = [_layer(MANIFEST, "manifest.json", _descriptor(manifest))]
    layers.append(_layer(SIGNATURE, "manifest.sig", _descriptor(signature)))
    layers += [
        _layer(blob_type(name), name, Descriptor(artifact.sha256, artifact.size)) for name, artifact in value.artifacts
    ]
    return canonical(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "artifactType": ARTIFACT_TYPE,
            "config": _entry(_EMPTY_TYPE, _descriptor(EMPTY)),
            "layers": layers,
            "annotations": {
                _TITLE: value.name,
                "org.opencontainers.image.version": value.kernel_version,
                "dev.netboot.architecture": value.architecture,
                "dev.netboot.image": value.digest,
            },
        }
    )


def read_artifact(data: bytes, where: str) -> Signed:
    """Where manifest and signature of an image are; `where` for words.

    Raises:
        RegistryError: something else is kept there, like a container image.
    """
    value = _read_object(data)
    kind = value.get("artifactType")
    if kind != ARTIFACT_TYPE:
        what = (value.get("mediaType") if kind is None else kind) or "of no kind that it says"
        raise RegistryError(
            f"{where} is no image of netboot's but {str(what)[:100]}: push one with `netboot image push`"
        )
    layers = {media: Descriptor(sha256, size) for media, sha256, size in _layers(value)}
    manifest, signature = layers.get(MANIFEST), layers.get(SIGNATURE)
    if manifest is None or signature is None:
        raise RegistryError(f"{where} lacks the signed manifest of its image: push the image again")
    if manifest.size > MOST_MANIFEST or signature.size > MOST_SIGNATURE:
        raise RegistryError(f"{where} has a signed manifest larger than any of ours: push the image again")
    return Signed(manifest, signature)


def read_blobs(manifest: Manifest) -> Iterator[tuple[str, Artifact]]:
    """Every blob that the signed manifest wants, each once: two artifacts may be the same bytes."""
    seen = set[str]()
    for name, artifact in manifest.artifacts:
        if artifact.sha256 not in seen:
            seen.add(artifact.sha256)
            yield name, artifact


def _descriptor(data: bytes) -> Descriptor:
    return Descriptor(hashlib.sha256(data).hexdigest(), len(data))


def _entry(media: str, descriptor: Descriptor) -> dict[str, Any]:
    return {"mediaType": media, "digest": f"sha256:{descriptor.sha256}", "size": descriptor.size}


def _layer(media: str, title: str, descriptor: Descriptor) -> dict[str, Any]:
    return {**_entry(media, descriptor), "annotations": {_TITLE: title}}


def _read_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _layers(value: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    layers = value.get("layers")
    for layer in layers if isinstance(layers, list) else ():
        match layer:
            case {"mediaType": str(media), "digest": str(digest), "size": int(size)}:
                method, _, sha256 = digest.partition(":")
                if method == "sha256" and is_digest(sha256) and size >= 0:
                    yield media, sha256, size
