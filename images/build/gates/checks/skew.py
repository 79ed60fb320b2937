"""Gate *skew*: the kubelet is not newer than the cluster and not too old for it."""

from images.build.gates.facts import Facts
from images.build.gates.gate import Gate
from images.values.finding import Finding
from images.values.skew import skew


def check(facts: Facts) -> list[Finding]:
    """At most one finding; none where the recipe names no cluster."""
    cluster, kubelet = facts.recipe.kubernetes, facts.programs.get("kubelet", "")
    if cluster is None:
        return []
    if not kubelet:
        cause = f"the recipe is for a cluster of Kubernetes {cluster}, and the image has no kubelet"
        return [Finding("skew", cause, "add the package kubelet, or take 'kubernetes' out of the recipe")]
    words = skew(kubelet, cluster)
    if words is None:
        cause = f"nobody can tell what minor version of Kubernetes the kubelet {kubelet!r} is"
        return [Finding("skew", cause, "take a kubelet whose package or --version says it, like 1.34.4")]
    remedy = "take the kubelet from the cluster's own minor version, or correct 'kubernetes' in the recipe"
    return [Finding("skew", f"the kubelet is {kubelet}, which is {words}", remedy)] if words else []


def _scope(facts: Facts) -> str:
    return f"kubelet {facts.programs.get('kubelet') or 'none'}, cluster {facts.recipe.kubernetes or 'not named'}"


GATE = Gate("skew", check, _scope)
