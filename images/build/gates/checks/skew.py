"""Gate *skew*: the kubelet is not newer than the cluster and not too old for it.

Kubernetes' version skew policy (https://kubernetes.io/releases/version-skew-policy/): never newer than the apiserver,
up to three minor versions older; a kubelet before 1.25 up to two.
"""

from images.build.gates.facts import Facts, minor
from images.build.gates.gate import Gate
from images.values.finding import Finding


def check(facts: Facts) -> list[Finding]:
    """At most one finding; none where the recipe names no cluster."""
    cluster, kubelet = facts.recipe.kubernetes, facts.programs.get("kubelet", "")
    if cluster is None:
        return []
    if not kubelet:
        cause = f"the recipe is for a cluster of Kubernetes {cluster}, and the image has no kubelet"
        return [Finding("skew", cause, "add the package kubelet, or take 'kubernetes' out of the recipe")]
    newest, kubelet_minor = minor(cluster), minor(kubelet)
    if newest is None or kubelet_minor is None:
        cause = f"nobody can tell what minor version of Kubernetes the kubelet {kubelet!r} is"
        return [Finding("skew", cause, "take a kubelet whose package or --version says it, like 1.34.4")]
    oldest = (newest[0], newest[1] - (3 if kubelet_minor >= (1, 25) else 2))
    if oldest <= kubelet_minor <= newest:
        return []
    how = "newer than" if kubelet_minor > newest else "too old for"
    return [
        Finding(
            "skew",
            f"the kubelet is {kubelet}, which is {how} a cluster of Kubernetes {cluster} "
            f"({_dotted(max(oldest, (1, 0)))} to {_dotted(newest)} may join it)",
            "take the kubelet from the cluster's own minor version, or correct 'kubernetes' in the recipe",
        )
    ]


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _scope(facts: Facts) -> str:
    return f"kubelet {facts.programs.get('kubelet') or 'none'}, cluster {facts.recipe.kubernetes or 'not named'}"


GATE = Gate("skew", check, _scope)
