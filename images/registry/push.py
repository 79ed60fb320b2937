"""From the store into a registry, and from one tag to another there."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from images.artifact.manifest import Artifact, Manifest
from images.artifact.signing import PublicKey
from images.errors import CorruptError
from images.registry.artifact import EMPTY, Descriptor, read_artifact, read_blobs, write_artifact
from images.registry.client import OciRegistry
from images.registry.download import Progress
from images.registry.errors import AbsentError, DamagedError
from images.registry.pull import Announced, announce
from images.registry.retry import RetryPolicy
from images.registry.sources import RegistrySource, blob_words
from images.store import check
from images.store.store import Store


@dataclass(frozen=True, slots=True)
class Pushed:
    """`digest`: of the registry's manifest, `sha256:<hex>`; `sent`: bytes of artifacts that were not there yet."""

    image: str
    digest: str
    tags: tuple[str, ...]
    sent: int


@dataclass(frozen=True, slots=True)
class Promoted:
    """`before`: the image that the tag named, None where it named none of ours."""

    image: str
    digest: str
    before: str | None


def publishable(store: Store, digest: str, trusted: Collection[PublicKey]) -> Manifest:
    """The manifest of an image that may be shown to others: signed by a trusted key, every blob there.

    Raises:
        images.errors.ImageError.
    """
    check.check_signature(store, digest, trusted)
    manifest = store.manifest(digest)
    findings = check.check_sizes(store, manifest)
    if findings:
        raise CorruptError("; ".join(map(str, findings)))
    return manifest


def absent(registry: OciRegistry, manifest: Manifest, retry: RetryPolicy) -> dict[str, Artifact]:
    """The artifacts that the registry does not have, each blob once; by name.

    Raises:
        DamagedError: it has one with another size, and will not take it again. RegistryError and its kin.
    """
    return {
        name: artifact
        for name, artifact in read_blobs(manifest)
        if not _there(registry, Descriptor(artifact.sha256, artifact.size), name, retry)
    }


def push(
    store: Store,
    manifest: Manifest,
    registry: OciRegistry,
    tag: str,
    names: Collection[str],
    retry: RetryPolicy,
    progress: Progress,
) -> Pushed:
    """Upload the artifacts of these `names` (of `absent`), then name the image there by its digest and by `tag`.

    Raises:
        RegistryError and its kin; the tag is set last, so it names a whole image or what it named before.
    """
    digest, sent = manifest.digest, 0
    signed = store.manifest_bytes(digest), store.signature(digest)
    for name, artifact in read_blobs(manifest):
        if name in names:
            _upload(store, registry, name, artifact, retry, progress)
            sent += artifact.size
    for data, what in (*zip(signed, ("manifest.json", "manifest.sig"), strict=True), (EMPTY, "the configuration")):
        _upload_bytes(registry, data, what, retry)
    written = write_artifact(*signed, manifest)
    tags = tuple(dict.fromkeys((digest, tag)))
    for alias in tags:
        retry(partial(registry.put_manifest, alias, written))
    return Pushed(digest, f"sha256:{hashlib.sha256(written).hexdigest()}", tags, sent)


def promote(
    source: OciRegistry, name: str, target: OciRegistry, tag: str, trusted: Collection[PublicKey], retry: RetryPolicy
) -> Promoted:
    """Let `tag` of `target` name the image that `name` names in `source`, of the same registry; no bytes move.

    Raises:
        images.errors.SignatureError: by no trusted key: nothing was changed. RegistryError and its kin.
    """
    announced = announce(RegistrySource(source), name, trusted, retry)
    data = retry(lambda: source.manifest(name))
    signed = read_artifact(data, f"{source.where}:{name}")
    if signed.manifest.sha256 != announced.digest:
        raise DamagedError(f"{source.where}:{name} was moved while it was looked at: try again")
    blobs = {blob.sha256: (label, Descriptor(blob.sha256, blob.size)) for label, blob in read_blobs(announced.manifest)}
    blobs |= {blob.sha256: (label, blob) for label, blob in zip(("manifest.json", "manifest.sig"), signed, strict=True)}
    empty = Descriptor(hashlib.sha256(EMPTY).hexdigest(), len(EMPTY))
    for label, blob in (*blobs.values(), ("the configuration", empty)):
        if not _there(target, blob, label, retry):
            if target.where == source.where:
                raise AbsentError(f"{source.where} lacks {blob_words(label, blob.sha256)}: push the image again")
            retry(partial(target.mount, source.reference.repository, blob.sha256, label))
    before = _named(target, tag, trusted, retry)
    for alias in dict.fromkeys((announced.digest, tag)):
        retry(partial(target.put_manifest, alias, data))
    return Promoted(announced.digest, f"sha256:{hashlib.sha256(data).hexdigest()}", before.digest if before else None)


def _named(registry: OciRegistry, tag: str, trusted: Collection[PublicKey], retry: RetryPolicy) -> Announced | None:
    try:
        return announce(RegistrySource(registry), tag, trusted, retry)
    except (AbsentError, DamagedError):
        return None


def _there(registry: OciRegistry, blob: Descriptor, name: str, retry: RetryPolicy) -> bool:
    size = retry(lambda: registry.blob_size(blob.sha256))
    if size is not None and size != blob.size:
        # Registries take a blob that they have for whole (distribution, blobwriter.go, moveBlob): a push mends nothing.
        what = f"{blob_words(name, blob.sha256)} of {registry.where}"
        raise DamagedError(
            f"{what} is damaged: it has {size} bytes there, {blob.size} were signed; "
            "remove that blob from the registry's storage, then push the image again"
        )
    return size is not None


def _upload(
    store: Store, registry: OciRegistry, name: str, artifact: Artifact, retry: RetryPolicy, progress: Progress
) -> None:
    path, what = store.blob_path(artifact.sha256), blob_words(name, artifact.sha256)

    def attempt() -> None:
        done = 0

        def count(step: int) -> None:
            nonlocal done
            done += step
            progress(step)

        try:
            registry.push(path, artifact.sha256, what, count)
        except BaseException:
            progress(-done)
            raise

    retry.longer()(attempt)


def _upload_bytes(registry: OciRegistry, data: bytes, what: str, retry: RetryPolicy) -> None:
    descriptor = Descriptor(hashlib.sha256(data).hexdigest(), len(data))
    if not _there(registry, descriptor, what, retry):
        retry.longer()(lambda: registry.push_bytes(data, descriptor.sha256, what))
