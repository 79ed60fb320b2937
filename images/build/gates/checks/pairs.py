"""Gate *pairs*: a kubelet and a containerd that are known not to work together.

A row is a fact with its source; what merely has no support any more is not here. Kubernetes announced the end of
containerd 1.x for 1.36 and put it off to 1.37 and then to 1.38, so 1.36 and 1.37 do work with it.
"""

from dataclasses import dataclass

from images.build.gates.facts import Facts
from images.build.gates.gate import Gate
from images.values.finding import Finding
from images.values.skew import minor


@dataclass(frozen=True, slots=True)
class Pair:
    """From this kubelet on, a containerd before this one does not do, and why."""

    kubelet: tuple[int, int]
    containerd: tuple[int, int]
    why: str
    source: str


PAIRS = (
    Pair(
        (1, 26),
        (1, 6),
        "the kubelet speaks version 1 of the CRI only, which came with containerd 1.6, and does not start",
        "https://kubernetes.io/blog/2022/11/18/upcoming-changes-in-kubernetes-1-26/",  # and containerd/containerd#7799
    ),
    Pair(
        (1, 38),
        (2, 0),
        "the kubelet asks containerd for its cgroup driver (RuntimeConfig), which came with 2.0, and does not start",
        "https://github.com/kubernetes/enhancements/pull/6087",  # KEP-4033: the fall-back goes in 1.38
    ),
)


def check(facts: Facts) -> list[Finding]:
    """One finding for each row that fits."""
    kubelet, containerd = facts.programs.get("kubelet", ""), facts.programs.get("containerd", "")
    kubelet_minor, containerd_minor = minor(kubelet), minor(containerd)
    if kubelet_minor is None or containerd_minor is None:
        return []
    return [
        Finding(
            "pairs",
            f"kubelet {kubelet} does not work with containerd {containerd}: {pair.why} ({pair.source})",
            f"take containerd {pair.containerd[0]}.{pair.containerd[1]} or later, "
            f"or a kubelet before {pair.kubelet[0]}.{pair.kubelet[1]}",
        )
        for pair in PAIRS
        if kubelet_minor >= pair.kubelet and containerd_minor < pair.containerd
    ]


def _scope(facts: Facts) -> str:
    names = ("kubelet", "containerd")
    return ", ".join(f"{name} {facts.programs.get(name) or 'none'}" for name in names) + f"; {len(PAIRS)} known pairs"


GATE = Gate("pairs", check, _scope)
