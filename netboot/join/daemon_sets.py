"""Which DaemonSets of a cluster stay off a Node until its gate opens: those that do not tolerate the taint with which
our Nodes register. Pure; the rules are those of `ToleratesTaint` (k8s.io/api/core/v1/toleration.go)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from netboot.join.taints import CHECK_FIRST

_KEY, _, _EFFECT = CHECK_FIRST.partition(":")
_CNI = ("/etc/cni", "/opt/cni")
"""Where networks of Pods put their configuration and plugins (the defaults of containerd and CRI-O)."""
FOR_EVER = -1


class DaemonSet(NamedTuple):
    """`seconds`: for how long its Pods tolerate the taint, 0: not at all, FOR_EVER; `network`: it likely is the network
    of Pods, or of Services, without which no Node becomes Ready or no Pod reaches another."""

    namespace: str
    name: str
    seconds: int
    network: bool

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" + (f" (for {self.seconds} s)" if self.seconds else "")


def daemon_set(document: Mapping[str, Any]) -> DaemonSet | None:
    """As the apiserver has it; None: its Pods are for another operating system.

    The tolerations that its controller adds by itself (not-ready, unreachable, pressures, unschedulable) are of other
    keys: pkg/controller/daemon/util/daemonset_util.go.
    """
    metadata, spec = document["metadata"], document["spec"]["template"]["spec"]
    if (spec.get("nodeSelector") or {}).get("kubernetes.io/os", "linux") != "linux":
        return None
    paths = [str((volume.get("hostPath") or {}).get("path", "")) for volume in spec.get("volumes") or ()]
    network = any(_below(path, place) for path in paths for place in _CNI) or metadata["name"].startswith("kube-proxy")
    return DaemonSet(metadata["namespace"], metadata["name"], tolerated(spec.get("tolerations") or ()), network)


def tolerated(tolerations: Sequence[Mapping[str, Any]]) -> int:
    """For how many seconds Pods with these stay on a Node that registered; FOR_EVER, or 0. Of several that match the
    first counts (`GetMatchingTolerations` of pkg/apis/core/v1/helper, which who evicts Pods asks)."""
    first = next((each for each in tolerations if _tolerates(each)), None)
    if first is None:
        return 0
    seconds = first.get("tolerationSeconds")
    return FOR_EVER if seconds is None else max(0, int(seconds))


def _tolerates(toleration: Mapping[str, Any]) -> bool:
    """The taint has no value, so an operator that compares numbers (`Lt`, `Gt`) does not match it."""
    if toleration.get("effect") not in (None, "", _EFFECT) or toleration.get("key") not in (None, "", _KEY):
        return False
    operator = toleration.get("operator") or "Equal"
    return operator == "Exists" or (operator == "Equal" and not toleration.get("value"))


def _below(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")
