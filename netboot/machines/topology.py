"""Where a machine stands, as schedulers of jobs want to know it: said by its rack, and over that by itself."""

from typing import Annotated, Self

from pydantic import Field

from images.values.strict import Strict
from images.values.types import Matching

Place = Annotated[
    str,
    Matching(
        r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?",
        "must be letters, digits and -_., at most 63, beginning and ending with a letter or digit",
    ),
]
"""A value of a label."""


class Topology(Strict):
    """What is left out is not known, and no label. Not written either."""

    zone: Place | None = Field(None, exclude_if=lambda place: place is None)
    """As `topology.kubernetes.io/zone` has it."""
    region: Place | None = Field(None, exclude_if=lambda place: place is None)
    """As `topology.kubernetes.io/region` has it."""
    tiers: Annotated[tuple[Place, ...], Field(max_length=8, exclude_if=lambda tiers: not tiers)] = ()
    """Its switches, the nearest first: leaf, spine, …"""
    accelerator_domain: Place | None = Field(None, exclude_if=lambda place: place is None)
    """The same of machines whose GPUs reach each other: an NVLink domain."""

    def over(self, other: Self) -> Self:
        """What this leaves out as the other has it."""
        return type(self).model_validate(other.model_dump() | self.model_dump())


NOWHERE = Topology()
