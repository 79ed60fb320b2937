"""Whether what is stored is what was signed: quickly (signature and sizes) or whole (every byte)."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from images import signing
from images.errors import CorruptError, NotFoundError, SignatureError
from images.manifest import CHUNK_SIZE, Artifact, Manifest
from images.signing import PublicKey
from images.store import Store


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a stored image: which part, what, and what to do."""

    part: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.part}: {self.problem}; {self.remedy}"


def check_signature(store: Store, digest: str, trusted: Iterable[PublicKey]) -> PublicKey:
    """Who signed an image: reads the manifest and its signature, no artifact.

    Raises:
        NotFoundError, CorruptError, UnknownSignerError, BadSignatureError.
    """
    store.manifest(digest)
    return signing.verify(store.manifest_bytes(digest), store.signature(digest), trusted)


def check_sizes(store: Store, manifest: Manifest) -> tuple[Finding, ...]:
    """Whether every artifact is there with its size."""
    return tuple(found for name, artifact in manifest.artifacts if (found := _size(store, name, artifact)))


def check_image(
    store: Store, digest: str, trusted: Iterable[PublicKey], progress: Callable[[int], None] | None = None
) -> tuple[Finding, ...]:
    """Read every byte of an image; `progress` is told how many were read. Nothing found: the image is whole.

    Raises:
        NotFoundError: no such image.
    """
    findings = []
    try:
        check_signature(store, digest, trusted)
        manifest = store.manifest(digest)
    except CorruptError as error:
        return (Finding("manifest", str(error), f"run `netboot image rm {digest[:12]}` and build or fetch it again"),)
    except SignatureError as error:
        findings.append(Finding("manifest", str(error), "do not boot it unless you know why"))
        manifest = store.manifest(digest)
    for name, artifact in manifest.artifacts:
        found = _size(store, name, artifact) or _bytes(store, name, artifact, progress)
        if found:
            findings.append(found)
    return tuple(findings)


_AGAIN = "build or fetch the image again: a good blob takes its place"


def _size(store: Store, name: str, artifact: Artifact) -> Finding | None:
    try:
        size = store.blob_path(artifact.sha256).stat().st_size
    except NotFoundError:
        return Finding(name, f"blob {artifact.sha256[:12]} is missing", _AGAIN)
    if size != artifact.size:
        return Finding(name, f"blob {artifact.sha256[:12]} has {size} bytes, {artifact.size} were signed", _AGAIN)
    return None


def _bytes(store: Store, name: str, artifact: Artifact, progress: Callable[[int], None] | None) -> Finding | None:
    """Chunk by chunk, so that the finding says where the damage is."""
    whole, bad, index = hashlib.sha256(), [], 0
    with store.blob_path(artifact.sha256).open("rb") as file:
        while chunk := file.read(CHUNK_SIZE):
            whole.update(chunk)
            if artifact.chunks and hashlib.sha256(chunk).hexdigest() != artifact.chunks[index]:
                bad.append(index)
            index += 1
            if progress:
                progress(len(chunk))
    if whole.hexdigest() == artifact.sha256:
        return None
    where = f" in chunk {', '.join(map(str, bad))} of {len(artifact.chunks)}" if bad else ""
    return Finding(name, f"blob {artifact.sha256[:12]} is not what its digest says: damaged{where}", _AGAIN)
