"""What a join server says, in its file and in its own `/readyz`."""

from typing import Literal

from pydantic import Field

from images.values.strict import Strict
from netboot.status import Condition, Timed


class FindingStatus(Strict):
    """What the self-check found of a cluster that is not in order."""

    name: str
    outcome: Literal["warn", "refuse"]
    words: str
    remedy: str


class ClusterStatus(Condition):
    """Whether machines can join this cluster."""

    findings: tuple[FindingStatus, ...]


class JoinStatus(Condition, Timed):
    """A join server: its clusters by name. `certificate_expires_ms`: in ms since 1970; None: it has none to be
    used; `refused`: requests since the process was started, by status."""

    clusters: dict[str, ClusterStatus]
    certificate_expires_ms: int | None = None
    refused: dict[str, int] = Field(default_factory=dict)


class JoinReadiness(Strict):
    """What a join server's own `/readyz` answers. `problems`: what stands in the way, in words; empty where `ready`."""

    ready: bool
    problems: tuple[str, ...]
    clusters: dict[str, ClusterStatus]
