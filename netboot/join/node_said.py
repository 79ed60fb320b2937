"""What a Node object says besides what Kubernetes made it for: how healthy the node is, and who moves its taints."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

GATE = "netboot.dev/Gate"
"""The condition of a Node that tells others whether its gate is open: ours to write."""
BY_HAND = ("netboot.dev/gate", "manual")
"""The annotation of a Node whose taints we leave alone: somebody has taken its gate into their own hands."""

ACCEPTED = ("netboot.dev/accepted", "true")
"""The label of a Node whose gate an operator's word alone keeps open."""
KURED = "weave.works/kured-reboot-in-progress"
"""The annotation that kured puts on a Node (`--annotate-nodes`; kubereboot/kured, cmd/kured/main.go)."""
NVSENTINEL = ("dgxc.nvidia.com/nvsentinel-state", "quarantineHealthEventIsCordoned")
"""The label, or annotation, of a Node that NVSentinel has taken (NVIDIA/NVSentinel, docs/INTEGRATIONS.md)."""
WRITTEN = "netboot.dev/labels"
"""The annotation of a Node that names the labels which we wrote, with commas between: those we take off again."""


class GateSaid(NamedTuple):
    """What the condition GATE says. `status`: True: open, False: shut."""

    status: str
    reason: str
    message: str


class HealthSaid(NamedTuple):
    """What a node says of its health, in its condition `netboot.dev/Healthy` and the annotations of its own.

    `status`: True, False, Unknown; `credential`: hex SHA-256 of the certificate that it was written with, which
    admission compares; `checks`: name → how it turned out; `at`: when it was said, by the node's clock, as it wrote it.
    """

    status: str
    reason: str
    message: str
    credential: str
    checks: Mapping[str, str]
    at: str


def by_hand(annotations: Mapping[str, str]) -> bool:
    """Whether somebody has taken a Node's taints into their own hands."""
    return annotations.get(BY_HAND[0]) == BY_HAND[1]


def holder(labels: Collection[str], annotations: Mapping[str, str], *, cordoned: bool) -> str:
    """Who else has taken a Node, and by what that is known; "": nobody."""
    if by_hand(annotations):
        return f"somebody has taken it into their own hands (annotation {BY_HAND[0]}={BY_HAND[1]})"
    if KURED in annotations:
        return f"kured reboots it (annotation {KURED})"
    if said := next((name for name in NVSENTINEL if name in labels or name in annotations), None):
        return f"NVSentinel has it ({said})"
    return "somebody cordoned it (kubectl uncordon)" if cordoned else ""
