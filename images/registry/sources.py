"""Where images come from: a registry, a plain origin, a folder. One interface; nothing that they give is believed."""

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import requests

from images.artifact.manifest import Artifact
from images.errors import StoreError
from images.registry.answers import BLOCK, TIMEOUT, Stream, bounded, in_words, stream
from images.registry.artifact import MOST_MANIFEST, MOST_SIGNATURE, Descriptor, read_artifact
from images.registry.client import OciRegistry
from images.registry.errors import AbsentError, DamagedError, RegistryError
from images.registry.reference import Origin
from images.store.pointers import is_digest
from images.values import files
from images.values.sessions import session


class SignedManifest(NamedTuple):
    """An image's manifest and signature as they came."""

    manifest: bytes
    signature: bytes


class Source(Protocol):
    """A place with images. Every method raises images.registry.errors: absent, denied, damaged, cannot tell."""

    @property
    def where(self) -> str:
        """The registry and repository, or the URL, as messages name it."""
        ...

    def signed(self, name: str) -> SignedManifest:
        """Manifest and signature of an image, by its digest; in a registry also by a tag or the registry's digest."""
        ...

    def blob(self, artifact: Artifact, name: str, offset: int) -> AbstractContextManager[Stream]:
        """An artifact's bytes, from `offset` on where the place can continue; `name`: of the artifact, for words."""
        ...


class RegistrySource:
    """Images of one repository of a registry, by tag or digest, over the OCI distribution protocol."""

    def __init__(self, registry: OciRegistry) -> None:
        self._registry = registry

    @property
    def where(self) -> str:
        return self._registry.where

    def signed(self, name: str) -> SignedManifest:
        data = self._registry.manifest(name)
        if name.startswith("sha256:") and hashlib.sha256(data).hexdigest() != name.removeprefix("sha256:"):
            raise DamagedError(f"what {self.where} gives as {name} is something else: push the image again")
        artifact = read_artifact(data, f"{self.where}{'@' if ':' in name else ':'}{name}")
        return SignedManifest(
            self._small(artifact.manifest, "manifest.json"), self._small(artifact.signature, "manifest.sig")
        )

    def blob(self, artifact: Artifact, name: str, offset: int) -> AbstractContextManager[Stream]:
        return self._registry.blob(artifact.sha256, artifact.size, offset, blob_words(name, artifact.sha256))

    def _small(self, descriptor: Descriptor, name: str) -> bytes:
        what = blob_words(name, descriptor.sha256)
        with self._registry.blob(descriptor.sha256, descriptor.size, 0, what) as given:
            data = bytearray()
            for block in given.blocks:
                data += block
                if len(data) > descriptor.size:
                    break
        if hashlib.sha256(data).hexdigest() != descriptor.sha256:
            raise DamagedError(f"{what} of {self.where} is damaged: its bytes are not those of its digest")
        return bytes(data)


class OriginSource:
    """A plain file server with the store's layout. No credentials: what it serves is signed, and no secret."""

    def __init__(self, origin: Origin, *, authority: Path | None = None) -> None:
        self._origin = origin
        self._session = session()
        self._session.verify = str(authority) if authority else True

    @property
    def where(self) -> str:
        return self._origin.base

    def close(self) -> None:
        """Close what is open."""
        self._session.close()

    def signed(self, name: str) -> SignedManifest:
        if not is_digest(name):
            raise AbsentError(f"{self.where} knows images by their digests only, not {name[:80]!r}")
        # The signature first: an image is listed there from the instant its manifest is, which is written last.
        signature = self._small(f"images/{name}/manifest.sig", MOST_SIGNATURE, name)
        return SignedManifest(self._small(f"images/{name}/manifest.json", MOST_MANIFEST, name), signature)

    @contextmanager
    def blob(self, artifact: Artifact, name: str, offset: int) -> Iterator[Stream]:
        what = blob_words(name, artifact.sha256)
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        with closing(self._get(f"blobs/{artifact.sha256}", headers, what)) as answer:
            yield stream(answer, offset, artifact.size, self.where, what)

    def _small(self, path: str, most: int, digest: str) -> bytes:
        what = f"image {digest[:12]}"
        return bounded(self._get(path, {}, what), most, self.where, what)

    def _get(self, path: str, headers: dict[str, str], what: str) -> requests.Response:
        with in_words(self.where, what):
            url = f"{self._origin.base}/{path}"
            identity = {"Accept-Encoding": "identity", **headers}
            answer = self._session.get(url, headers=identity, stream=True, timeout=TIMEOUT)
            answer.raise_for_status()
            return answer


class FolderSource:
    """A folder with the store's layout, as `export` writes it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def where(self) -> str:
        return str(self._root)

    def digests(self) -> tuple[str, ...]:
        """The images there.

        Raises:
            AbsentError: no folder of images. RegistryError: it cannot be read.
        """
        try:
            names = files.names(self._root / "images")
        except StoreError as error:
            raise RegistryError(str(error)) from None
        digests = tuple(name for name in names if is_digest(name))
        if not digests:
            raise AbsentError(f"{self.where} has no images: `netboot image export IMAGE {self.where}` puts one there")
        return digests

    def signed(self, name: str) -> SignedManifest:
        if not is_digest(name):
            raise AbsentError(f"{self.where} knows images by their digests only, not {name[:80]!r}")
        what = f"image {name[:12]}"
        signature = self._small(self._root / "images" / name / "manifest.sig", MOST_SIGNATURE, what)
        return SignedManifest(
            self._small(self._root / "images" / name / "manifest.json", MOST_MANIFEST, what), signature
        )

    @contextmanager
    def blob(self, artifact: Artifact, name: str, offset: int) -> Iterator[Stream]:
        what = blob_words(name, artifact.sha256)
        with self._reading(what):
            file = (self._root / "blobs" / artifact.sha256).open("rb")
        with file:
            size = file.seek(0, 2)
            if size != artifact.size:
                raise DamagedError(
                    f"{what} of {self.where} is damaged: it has {size} bytes there, {artifact.size} were signed"
                )
            file.seek(offset)
            yield Stream(offset, self._blocks(file, what))

    def _blocks(self, file: BinaryIO, what: str) -> Iterator[bytes]:
        with self._reading(what):
            yield from iter(lambda: file.read(BLOCK), b"")

    def _small(self, path: Path, most: int, what: str) -> bytes:
        with self._reading(what), path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise RegistryError(f"{what} of {self.where} has more than {most} bytes: it is none of ours")
        return data

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise AbsentError(f"{self.where} has no {what}") from None
        except OSError as error:
            raise RegistryError(f"cannot read {what} of {self.where}: {error.strerror}") from None


def blob_words(name: str, sha256: str) -> str:
    """An artifact as messages name it: `root (blob 0123456789ab)`."""
    return f"{name} (blob {sha256[:12]})"
