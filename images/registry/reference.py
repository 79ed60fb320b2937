"""Where an image is, as people write it: `registry/repository[:tag][@digest]`, or the URL of a plain origin. Pure.

Grammar: the distribution specification, "Pulling manifests" (github.com/opencontainers/distribution-spec, spec.md); the
registry must be named, because a name without one would mean somebody's public hub.
"""

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from images.registry.errors import BadReferenceError
from images.store.pointers import is_digest

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9.-]*[a-z0-9])?)(:[0-9]{1,5})?", re.IGNORECASE)
_REPOSITORY = re.compile(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MOST = 255
_FORM = "write REGISTRY/REPOSITORY[:TAG], like registry.example:5000/netboot/images:stable"
LATEST = "latest"
"""The tag of a reference that names none, as everywhere."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a registry. `digest`: of the registry's manifest, `sha256:<hex>`; it wins over the tag."""

    registry: str
    repository: str
    tag: str = LATEST
    digest: str | None = None

    def __str__(self) -> str:
        return f"{self.place}@{self.digest}" if self.digest else f"{self.place}:{self.tag}"

    @property
    def place(self) -> str:
        """Registry and repository, like `registry.example.org:5000/site/images`."""
        return f"{self.registry}/{self.repository}"

    @property
    def name(self) -> str:
        """What a manifest is asked for by: the digest, else the tag."""
        return self.digest or self.tag

    @property
    def loopback(self) -> bool:
        """Whether the registry is on this machine, where plain HTTP is heard by nobody else."""
        host = _host(self.registry)
        return host == "localhost" or host == "[::1]" or re.fullmatch(r"127(\.[0-9]{1,3}){3}", host) is not None

    def tagged(self, tag: str) -> "Reference":
        """The same repository, another tag."""
        return replace(self, tag=tag, digest=None)


@dataclass(frozen=True, slots=True)
class Origin:
    """A plain file server with the store's layout below `base`, a URL without trailing slash."""

    base: str

    def __str__(self) -> str:
        return self.base


def read_reference(text: str) -> Reference:
    """A place in a registry.

    Raises:
        BadReferenceError: it is none, with the form.
    """
    shown = repr(text[:200])
    registry, slash, rest = text.partition("/")
    if "://" in text:
        raise BadReferenceError(f"{shown} has a scheme: {_FORM}; plain HTTP is an option of its own (--plain-http)")
    if "@" in registry:
        raise BadReferenceError("a registry is written without a user: give --username, and the password on stdin")
    if not slash or not ("." in registry or ":" in registry or registry == "localhost"):
        raise BadReferenceError(f"{shown} names no registry: {_FORM}")
    rest, at, digest = rest.partition("@")
    repository, colon, tag = rest.partition(":")
    if not _HOST.fullmatch(registry) or not _port_is_sound(registry):
        raise BadReferenceError(f"{registry[:80]!r} is no host of a registry: {_FORM}")
    if not _REPOSITORY.fullmatch(repository) or len(repository) > _MOST:
        raise BadReferenceError(
            f"{repository[:80]!r} is no repository: lower-case letters, digits, '.', '_', '-' and '/'"
        )
    if colon and not _TAG.fullmatch(tag):
        raise BadReferenceError(f"{tag[:80]!r} is no tag: letters, digits, '_', '.' and '-', at most 128")
    if at and not _DIGEST.fullmatch(digest):
        raise BadReferenceError(f"{digest[:80]!r} is no digest of a registry: sha256: and 64 hexadecimal characters")
    return Reference(registry, repository, tag if colon else LATEST, digest if at else None)


def read_origin(text: str) -> tuple[Origin, str | None]:
    """A plain origin from the URL of it or of an image there; the image's digest, None where the URL names none.

    Raises:
        BadReferenceError: no such URL.
    """
    wrong = BadReferenceError(
        f"{text[:200]!r} is no plain origin: write http://HOST[:PORT]/v1/images/DIGEST, without user, query or spaces"
    )
    try:
        url = urlsplit(text)
        sound = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        raise wrong from None
    if "@" in url.netloc:
        raise BadReferenceError("a plain origin is written without a user: no login is sent to it")
    if not sound or url.query or url.fragment:
        raise wrong
    if not re.fullmatch(r"[!-~]+", text):
        raise wrong
    stem = text.rstrip("/").removesuffix("/manifest.json")
    base, images, digest = stem.rpartition("/images/")
    if not images:
        return Origin(stem), None
    if not is_digest(digest):
        raise wrong
    return Origin(base), digest


def read_place(text: str) -> str:
    """A repository or a plain origin as a whole, where images are asked for by their digests; in its usual form.

    Raises:
        BadReferenceError: it is none, or names one image.
    """
    by_digest = "images are asked for by their digests here"
    if is_url(text):
        origin, digest = read_origin(text)
        if digest is not None:
            raise BadReferenceError(f"{by_digest}: let the URL end before /images/")
        return str(origin)
    reference = read_reference(text)
    if text != reference.place:
        raise BadReferenceError(f"{by_digest}: write REGISTRY/REPOSITORY without a tag")
    return reference.place


def is_url(text: str) -> bool:
    """Whether it is meant as the URL of a plain origin."""
    return text.startswith(("http://", "https://"))


def _host(registry: str) -> str:
    """Without the port."""
    return re.sub(r":[0-9]+$", "", registry)


def _port_is_sound(registry: str) -> bool:
    port = registry.removeprefix(_host(registry)).removeprefix(":")
    return not port or 1 <= int(port) <= 65535
