"""Which kubelets may join a cluster: Kubernetes' version skew policy.

Never newer than the apiserver, up to three minor versions older; a kubelet before 1.25 up to two. Source:
https://kubernetes.io/releases/version-skew-policy/, "kubelet".
"""

import re


def minor(version: str) -> tuple[int, int] | None:
    """The first two numbers: `v1.34.4`, `1:1.6.20~ds1-1+deb12u1` → (1, 34), (1, 6); None where there are none."""
    match = re.match(r"(?:\d+:)?v?(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else None


def skew(kubelet: str, cluster: str) -> str | None:
    """How a kubelet does not fit a cluster, in words; "": it does; None: one of them is no version."""
    newest, its = minor(cluster), minor(kubelet)
    if newest is None or its is None:
        return None
    oldest = (newest[0], newest[1] - (3 if its >= (1, 25) else 2))
    if oldest <= its <= newest:
        return ""
    how = "newer than" if its > newest else "too old for"
    range_ = f"{_dotted(max(oldest, (1, 0)))} to {_dotted(newest)}"
    return f"{how} a cluster of Kubernetes {cluster} ({range_} may join it)"


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
