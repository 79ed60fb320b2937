"""The site bundle: what belongs to a site and not to an image, signed by the same key, fetched by the initrd.

The very same image digest boots in staging and in production because all that differs is in here.
"""

from typing import Annotated, Literal

from pydantic import Field

from images.artifact.manifest import Signed, read_signed
from images.values.digests import canonical
from images.values.types import HttpUrl, Matching, Name

TimeServer = Annotated[
    str,
    Matching(r"[0-9A-Za-z][0-9A-Za-z.:-]{0,252}", "must be the name or the address of a time server, without a port"),
]


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

    time_servers: Annotated[tuple[TimeServer, ...], Field(max_length=8)] = ()
    """For NTP. Of all keys the last: the initrd reads `origins` and `report` by what follows them."""

    def to_bytes(self) -> bytes:
        """The canonical bytes, which are signed: without time servers those of before there were any."""
        value = self.model_dump(mode="json", by_alias=True)
        if not self.time_servers:
            del value["time_servers"]
        return canonical(value)


def read_bundle(data: bytes) -> SiteBundle:
    """The site bundle in `data`, whoever signed it.

    Raises:
        CorruptError: not a site bundle of a known version, or not in canonical form.
    """
    return read_signed(data, SiteBundle)
