"""The distribution protocol, by the library `python-dxf` (docs/decisions/015): its requests, its logins, its uploads.

What it lacks is here: bounded and resumed downloads, no settings from the environment, failures in our words.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
from dxf import DXF, DXFBase
from dxf.exceptions import DXFAuthInsecureError, DXFError, DXFUnauthorizedError

from images.registry.answers import TIMEOUT, Stream, bounded, in_words, stream
from images.registry.artifact import MOST_MANIFEST, OCI_MANIFEST
from images.registry.credentials import Login
from images.registry.errors import AbsentError, DeniedError, RegistryError
from images.registry.reference import Reference
from images.store.pointers import is_digest
from images.values.sessions import session

_INDEX = "application/vnd.oci.image.index.v1+json"
_DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
Progress = Callable[[int], None]


class OciRegistry:
    """One repository of a registry; a context manager. `authority`: PEM that vouches for its certificate, None: the
    system's. Plain HTTP: with `plain_http`, and on this machine where no authority is given."""

    def __init__(
        self,
        reference: Reference,
        login: Login | None = None,
        *,
        authority: Path | None = None,
        plain_http: bool = False,
    ) -> None:
        self.reference, self._login = reference, login
        self._insecure = plain_http or (reference.loopback and authority is None)
        self._dxf = _Client(
            reference.registry,
            reference.repository,
            auth=self._authenticate,
            insecure=self._insecure,
            tlsverify=str(authority) if authority else True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the registry."""
        self._dxf.session.close()

    @property
    def where(self) -> str:
        """Registry and repository, as messages name them."""
        return self.reference.place

    def manifest(self, name: str) -> bytes:
        """The registry's manifest of a tag or digest.

        Raises:
            RegistryError and its kin.
        """
        what = _called(name)
        with self._asking(what):
            headers = {"Accept": f"{OCI_MANIFEST}, {_INDEX}, {_DOCKER}", "Accept-Encoding": "identity"}
            answer = self._dxf.ask("get", f"manifests/{name}", headers=headers, stream=True)
            return bounded(answer, MOST_MANIFEST, self.where, what)

    def blob_size(self, sha256: str) -> int | None:
        """Bytes of a blob that is there; None: it is not.

        Raises:
            RegistryError and its kin, but AbsentError.
        """
        try:
            with self._asking(f"blob {sha256[:12]}"):
                return int(self._dxf.blob_size(f"sha256:{sha256}"))
        except AbsentError:
            return None

    @contextmanager
    def blob(self, sha256: str, size: int, offset: int, what: str) -> Iterator[Stream]:
        """A blob of `size` bytes from `offset` on.

        Raises:
            RegistryError and its kin; DamagedError: it has another size there.
        """
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
        with self._asking(what):
            answer = self._dxf.ask("get", f"blobs/sha256:{sha256}", headers=headers, stream=True)
        with answer:
            yield stream(answer, offset, size, self.where, what)

    def push(self, path: Path, sha256: str, what: str, progress: Progress) -> None:
        """Upload a file; the registry compares its digest.

        Raises:
            RegistryError and its kin. DamagedError: the file is not what its digest says.
        """

        def count(_digest: str, block: bytes, _size: int) -> None:
            progress(len(block))

        with self._asking(what):
            sent = self._dxf.push_blob(filename=str(path), progress=count, check_exists=False)
        if sent != f"sha256:{sha256}":
            raise RegistryError(f"{path} is not what its digest says: see `netboot image verify`")

    def push_bytes(self, data: bytes, sha256: str, what: str) -> None:
        """Upload a small blob.

        Raises:
            RegistryError and its kin.
        """
        with self._asking(what):
            self._dxf.push_blob(data=iter((data,)), digest=f"sha256:{sha256}", check_exists=False)

    def mount(self, repository: str, sha256: str, what: str) -> None:
        """Take over a blob of another repository of this registry; no bytes move.

        Raises:
            RegistryError and its kin.
        """
        with self._asking(what):
            self._dxf.mount_blob(repository, f"sha256:{sha256}")

    def put_manifest(self, tag: str, data: bytes) -> None:
        """Let a tag name a manifest, whose blobs are there.

        Raises:
            RegistryError and its kin.
        """
        with self._asking(_called(tag)):
            self._dxf.set_manifest(tag, data.decode())

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        try:
            with in_words(self.where, what):
                yield
        except DXFUnauthorizedError:
            raise self._denied(what) from None
        except DXFAuthInsecureError:
            raise DeniedError(
                f"{self.where} wants a login, and is reached in plain HTTP, where passwords do not travel: leave out "
                "--plain-http, or give --authority for a registry on this machine"
            ) from None
        except DeniedError as error:
            raise self._denied(what) if "wants a login" in str(error) else error from None
        except (DXFError, KeyError, json.JSONDecodeError) as error:
            raise RegistryError(
                f"{self.where} does not answer as a registry does: {type(error).__name__} for {what}"
            ) from None

    def _denied(self, what: str) -> DeniedError:
        if self._login is None:
            return DeniedError(
                f"{self.where} wants a login for {what}: log in with `docker login`, "
                "or give --username and the password on stdin"
            )
        return DeniedError(f"{self.where} does not accept the login of {self._login.username!r} for {what}")

    def _authenticate(self, dxf: DXFBase, response: requests.Response) -> None:
        """What the library calls where it is answered 401."""
        name, password = (self._login.username, self._login.password) if self._login else (None, None)
        dxf.authenticate(name, password, response=response)


def _called(name: str) -> str:
    """A manifest in a message: by the registry's digest, by an image's, by a tag."""
    if name.startswith("sha256:"):
        return f"manifest {name[:19]}"
    return f"image {name[:12]}" if is_digest(name) else f"tag {name}"


class _Client(DXF):
    """The library's client with one session that takes nothing from the environment: no netrc, no proxy."""

    def __init__(self, host: str, repo: str, **how: Any) -> None:
        super().__init__(host, repo, timeout=TIMEOUT, **how)  # type: ignore[arg-type] # requests takes the two of them
        self.session = session()
        self._sessions = [self.session]

    def ask(self, method: str, path: str, **how: Any) -> requests.Response:
        """A request below the repository, with a login where one is asked for."""
        answer: requests.Response = self._request(method, path, **how)  # type: ignore[no-untyped-call]
        return answer
