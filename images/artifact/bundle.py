"""The site bundle: what belongs to a site and not to an image, signed by the same key, fetched by the initrd.

The very same image digest boots in staging and in production because all that differs is in here.
"""

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from images.errors import CorruptError
from images.values.digests import canonical
from images.values.faults import first_fault
from images.values.strict import Strict
from images.values.types import HttpUrl, Name


class SiteBundle(Strict):
    """A site's facts. `issued` (seconds since 1970) only tells a newer bundle from an older one."""

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

    def to_bytes(self) -> bytes:
        """The canonical bytes, which are signed."""
        return canonical(self.model_dump(mode="json", by_alias=True))


def read_bundle(data: bytes) -> SiteBundle:
    """The site bundle in `data`.

    Raises:
        CorruptError: not a site bundle of a known version, or not in canonical form.
    """
    try:
        bundle = SiteBundle.model_validate_json(data)
    except ValidationError as error:
        raise CorruptError(f"not a site bundle: {first_fault(error)}") from None
    if bundle.to_bytes() != data:
        raise CorruptError("not a site bundle: its bytes are not in canonical form")
    return bundle
