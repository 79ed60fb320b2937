"""Whether what is stored is what was signed: quickly (signature and sizes) or whole (every byte)."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from images.artifact import signing
from images.artifact.bundle import SiteBundle, read_bundle
from images.artifact.manifest import CHUNK_SIZE, Artifact, Manifest
from images.artifact.measure import blocks
from images.artifact.signing import PublicKey
from images.errors import CorruptError, NotFoundError, SignatureError, StoreError
from images.store.store import Store
from images.values.faults import first_few

_AGAIN = "build or fetch the image again: a good blob takes its place"
_REFUSE = "do not boot it unless you know why"
_RESIGN = "run `netboot image sign` where that key signs: a good signature takes its place"
_MOST = 8
"""Damaged chunks that a finding names; more are counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a stored image: which part, what, and what to do; `chunks` that are damaged."""

    part: str
    problem: str
    remedy: str
    chunks: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.part}: {self.problem}; {self.remedy}"


def check_signature(store: Store, digest: str, trusted: Iterable[PublicKey]) -> PublicKey:
    """Who signed an image: reads the manifest and its signature, no artifact.

    Raises:
        NotFoundError, CorruptError, StoreError, UnknownSignerError, BadSignatureError.
    """
    store.manifest(digest)
    return signing.verify(store.manifest_bytes(digest), store.signature(digest), trusted)


def check_bundle(data: bytes, signature: bytes, trusted: Iterable[PublicKey]) -> SiteBundle:
    """The site bundle in `data`, signed by a trusted key.

    Raises:
        UnknownSignerError, BadSignatureError, CorruptError.
    """
    signing.verify(data, signature, trusted)
    return read_bundle(data)


def check_sizes(store: Store, manifest: Manifest) -> tuple[Finding, ...]:
    """Whether every artifact is there with its size."""
    return tuple(finding for name, artifact in manifest.artifacts if (finding := _size(store, name, artifact)))


def check_image(
    store: Store, digest: str, trusted: Iterable[PublicKey], progress: Callable[[int], None] | None = None
) -> tuple[Finding, ...]:
    """Read every byte of an image; `progress` is told how many were read. Nothing found: the image is whole.

    Raises:
        NotFoundError: no such image. StoreError: its manifest cannot be read now.
    """
    findings = []
    try:
        manifest = store.manifest(digest)
    except CorruptError as error:
        return (Finding("manifest", str(error), f"run `netboot image rm {digest}` and build or fetch it again"),)
    try:
        findings += _signatures(store.manifest_bytes(digest), store.signature(digest), tuple(trusted))
    except NotFoundError:
        findings.append(Finding("manifest", "its signature is missing", _REFUSE))
    except SignatureError as error:
        findings.append(Finding("manifest", str(error), _REFUSE))
    for name, artifact in manifest.artifacts:
        finding = _size(store, name, artifact) or _bytes(store, name, artifact, progress)
        if finding:
            findings.append(finding)
    return tuple(findings)


def _signatures(manifest: bytes, signatures: bytes, trusted: tuple[PublicKey, ...]) -> list[Finding]:
    """Beside a good signature, those of trusted keys that do not fit. None good: raises as `signing.verify` does."""
    signing.verify(manifest, signatures, trusted)
    return [
        Finding("manifest", f"the signature of key {signer} does not fit, and another key's does", _RESIGN)
        for signer, verdict in signing.examine(manifest, signatures, trusted)
        if verdict == "bad"
    ]


def _size(store: Store, name: str, artifact: Artifact) -> Finding | None:
    try:
        size = store.blob_path(artifact.sha256).stat().st_size
    except NotFoundError:
        return Finding(name, f"blob {artifact.sha256[:12]} is missing", _AGAIN)
    except (StoreError, OSError) as error:
        return Finding(name, str(error), _AGAIN)
    if size != artifact.size:
        return Finding(name, f"blob {artifact.sha256[:12]} has {size} bytes, {artifact.size} were signed", _AGAIN)
    return None


def _bytes(store: Store, name: str, artifact: Artifact, progress: Callable[[int], None] | None) -> Finding | None:
    """Chunk by chunk, so that the finding says where the damage is."""
    whole, chunks = hashlib.sha256(), list[str]()
    try:
        for chunk in blocks(store.blob_path(artifact.sha256)):
            whole.update(chunk)
            if artifact.chunks:
                chunks.append(hashlib.sha256(chunk).hexdigest())
            if progress:
                progress(len(chunk))
    except StoreError as error:
        return Finding(name, str(error), _AGAIN)
    bad = tuple(n for n, digest in enumerate(chunks) if artifact.chunks[n : n + 1] != (digest,))
    if whole.hexdigest() != artifact.sha256:
        problem = f"blob {artifact.sha256[:12]} is not what its digest says: damaged{_where(bad, len(chunks))}"
        return Finding(name, problem, _AGAIN, bad)
    if bad or len(chunks) != len(artifact.chunks) or (name == "root" and artifact.size and not chunks):
        problem = (
            f"the manifest's digests of chunks are not those of blob {artifact.sha256[:12]}: no machine can boot it"
        )
        return Finding(name, problem, "build the image again", bad)
    return None


def _where(bad: tuple[int, ...], count: int) -> str:
    if not bad:
        return ""
    return f" in chunk {first_few(bad, _MOST)} of {count} (counted from 0; from byte {bad[0] * CHUNK_SIZE} on)"
