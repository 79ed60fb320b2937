"""The site bundle: what belongs to a site and not to an image, signed by the same key, fetched by the initrd.

The very same image digest boots in staging and in production because all that differs is in here.
"""

import itertools
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from images.artifact.manifest import Signed, read_signed
from images.values.digests import canonical
from images.values.types import HttpUrl, Matching, Name, Sha256

TimeServer = Annotated[
    str,
    Matching(r"[0-9A-Za-z][0-9A-Za-z.:-]{0,252}", "must be the name or the address of a time server, without a port"),
]
SshKey = Annotated[
    str,
    Matching(
        r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)"
        r" [A-Za-z0-9+/]{40,2000}={0,2}",
        "must be a public key as OpenSSH writes it: its kind and its base64, without options and comment",
    ),
]
Principal = Annotated[
    str,
    Matching(
        r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}",
        "must be a principal of ssh certificates: 1 to 64 letters, digits and ._@-, beginning with a letter or digit",
    ),
]
MOST_REVOKED = 512
"""Images that a bundle revokes; older ones `minimum_epoch` withdraws for less."""


def _ascending(digests: tuple[str, ...]) -> tuple[str, ...]:
    if any(left >= right for left, right in itertools.pairwise(digests)):
        raise ValueError("must be in ascending order, each digest once")
    return digests


_LEFT_OUT = (
    "images_revoked",
    "journal_authorities",
    "journal_url",
    "ssh_authorities",
    "ssh_principals",
    "time_servers",
)
"""Keys that a bundle without them does not have: those of before there were any keep their bytes."""


class SiteBundle(Signed):
    """A site's facts. `issued` (seconds since 1970) only tells a newer bundle from an older one."""

    called = "a site bundle"
    schema_: Annotated[Literal["netboot.dev/site/v1"], Field(alias="schema")] = "netboot.dev/site/v1"
    site: Name
    issued: Annotated[int, Field(ge=0)]
    minimum_epoch: Annotated[int, Field(ge=0)]
    origins: Annotated[tuple[HttpUrl, ...], Field(min_length=1)]
    """Where artifacts come from, in order of preference, without a trailing slash."""
    report: HttpUrl
    """The provisioning address to which machines report."""
    join_url: HttpUrl | None = None
    join_authorities: tuple[str, ...] = ()
    """PEM certificates that join's TLS listener may chain to; several, so that they can overlap."""

    images_revoked: Annotated[tuple[Sha256, ...], AfterValidator(_ascending), Field(max_length=MOST_REVOKED)] = ()
    """Images that no machine of the site boots. Its name sorts before `issued`: no initrd of before it stumbles."""
    journal_url: HttpUrl | None = None
    """A systemd-journal-remote that takes the machines' journals."""
    journal_authorities: tuple[str, ...] = ()
    """PEM certificates that it may chain to, where it speaks TLS."""
    ssh_authorities: Annotated[tuple[SshKey, ...], Field(max_length=16)] = ()
    """Whose certificates the machines' ssh servers believe, where an image has one and its profile turns it on."""
    ssh_principals: Annotated[tuple[Principal, ...], Field(max_length=16)] = ()
    """Those among which profiles choose."""
    time_servers: Annotated[tuple[TimeServer, ...], Field(max_length=8)] = ()
    """For NTP. Of all keys the last: the initrd reads `origins` and `report` by what follows them."""

    def to_bytes(self) -> bytes:
        """The canonical bytes, which are signed."""
        value = self.model_dump(mode="json", by_alias=True)
        return canonical({key: said for key, said in value.items() if said or key not in _LEFT_OUT})


def read_bundle(data: bytes) -> SiteBundle:
    """The site bundle in `data`, whoever signed it.

    Raises:
        CorruptError: not a site bundle of a known version, or not in canonical form.
    """
    return read_signed(data, SiteBundle)
