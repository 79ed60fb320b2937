"""From a source into the store: first who signed it, then every byte, and only then is anything of it in the store."""

import hashlib
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from images.artifact import signing
from images.artifact.manifest import Artifact, Manifest, read_manifest
from images.artifact.measure import is_whole
from images.artifact.signing import PublicKey
from images.errors import CorruptError, NotFoundError, SignatureError
from images.registry.artifact import read_blobs
from images.registry.download import Progress, download
from images.registry.errors import DamagedError
from images.registry.retry import RetryPolicy
from images.registry.sources import SignedManifest, Source
from images.registry.staging import staging
from images.store.pointers import is_digest
from images.store.store import Store


@dataclass(frozen=True, slots=True)
class Announced:
    """An image whose signature is in order; no artifact has been read yet. `signer`: the key's id."""

    manifest: Manifest
    signed: SignedManifest
    signer: str

    @property
    def digest(self) -> str:
        """The image's digest."""
        return hashlib.sha256(self.signed.manifest).hexdigest()


def announce(source: Source, name: str, trusted: Collection[PublicKey], retry: RetryPolicy) -> Announced:
    """What an image says of itself, signed by a trusted key. `name`: see `Source.signed`.

    Raises:
        images.errors.SignatureError: by no trusted key, or altered. DamagedError: not the image that was asked for, or
        not a manifest of ours. RegistryError and its kin.
    """
    signed = retry(lambda: source.signed(name))
    key = signing.verify(signed.manifest, signed.signature, trusted)
    digest = hashlib.sha256(signed.manifest).hexdigest()
    if is_digest(name) and digest != name:
        raise DamagedError(f"{source.where} gives image {digest[:12]} as {name[:12]}: it is damaged, or deceives")
    try:
        return Announced(read_manifest(signed.manifest), signed, key.id)
    except CorruptError as error:
        raise DamagedError(f"image {digest[:12]} of {source.where}: {error}") from None


def missing(store: Store, manifest: Manifest) -> dict[str, Artifact]:
    """The artifacts that the store does not have, whole, each blob once; by name.

    Raises:
        images.errors.StoreError: cannot tell.
    """
    return {name: artifact for name, artifact in read_blobs(manifest) if _stored(store, artifact) is None}


def pull(
    source: Source,
    announced: Announced,
    store: Store,
    names: Collection[str],
    retry: RetryPolicy,
    progress: Progress,
) -> int:
    """Fetch the artifacts of these `names` (of `missing`), verify all, add the image; how many bytes were fetched.

    Raises:
        DamagedError: an artifact is not what was signed. RegistryError and its kin. images.errors.StoreError.
        Whatever is raised, by Ctrl-C too: nothing of the image has come into the store.
    """
    fetched = 0
    with staging(store.root) as folder:
        paths = dict[str, Path]()
        by_digest = dict[str, Path]()
        for name, artifact in announced.manifest.artifacts:
            path = by_digest.get(artifact.sha256)
            if path is None and name in names:
                path = folder / artifact.sha256
                download(source, name, artifact, path, retry, progress)
                fetched += artifact.size
            by_digest[artifact.sha256] = paths[name] = path or store.blob_path(artifact.sha256)
        store.add_image(announced.signed.manifest, _joined(store, announced), paths)
    return fetched


def _joined(store: Store, announced: Announced) -> bytes:
    """The signatures that came, and ours by other keys: a place that lacks one must not take it from us."""
    joined = announced.signed.signature
    with suppress(NotFoundError, SignatureError):
        lines = store.signature(announced.digest).splitlines(keepends=True)
        for ours in (b"".join(lines[at : at + 2]) for at in range(0, len(lines), 2)):
            if signing.signers_of(ours)[0] not in signing.signers_of(joined):
                joined = signing.add(joined, ours)
    return joined


def _stored(store: Store, artifact: Artifact) -> Path | None:
    with suppress(NotFoundError):
        path = store.blob_path(artifact.sha256)
        if is_whole(path, artifact):
            return path
    return None
