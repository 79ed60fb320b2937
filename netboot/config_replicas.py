"""The section of `netboot.yaml` about several services that look after the same clusters."""

import socket
from typing import Annotated, Self

from pydantic import Field, model_validator

from images.values.strict import Strict
from images.values.types import Matching

ReplicaName = Annotated[
    str,
    Matching(
        r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?",
        "must be a name of letters, digits, '.', '_' and '-', at most 63, as a host's is",
    ),
]


class Replicas(Strict):
    """Each is the whole service on its own disk; of each kind of process that acts in a cluster one leads."""

    name: ReplicaName | None = None
    """Of this one, for people; None: the host's name. No two have the same by this: each start has a number of its
    own beside it."""
    count: Annotated[int, Field(ge=1, le=25)] = 3
    """How many there are, or may be at most: by so many what all of them write to an API server is divided."""
    lease_seconds: Annotated[int, Field(ge=2, le=300)] = 15
    """How long the others wait after the leader's last renewal; the same for all replicas."""
    renew_seconds: Annotated[float, Field(ge=1, le=240)] = 10
    """How long a leader acts after its last renewal."""
    retry_seconds: Annotated[float, Field(ge=0.1, le=60)] = 2
    """Between two renewals, or two looks."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.renew_seconds > 0.8 * self.lease_seconds:
            raise ValueError("renew_seconds must be at most four fifths of lease_seconds, for clocks do not go alike")
        if 2 * self.retry_seconds > self.renew_seconds:
            raise ValueError(
                "retry_seconds must be at most half of renew_seconds: one renewal that fails is not the end"
            )
        return self

    @property
    def called(self) -> str:
        """The name of this replica."""
        return self.name if self.name is not None else socket.gethostname()[:63]


LONGEST_NAMESPACE = 63
"""Characters (RFC 1123)."""


def elections_of(namespace: str) -> str:
    """The namespace of the Leases of elections, beside that of the service's other Leases."""
    return f"{namespace}-leaders"
