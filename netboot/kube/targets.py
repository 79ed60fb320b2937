"""The clusters of a site as join uses them, each connected to when first needed and checked before use."""

import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import monotonic

from netboot.config import Cluster
from netboot.join.errors import ClusterUnavailableError
from netboot.join.parts import Target
from netboot.join.ports import Preconditions
from netboot.join.preconditions import Finding, check, refusals
from netboot.kube.connection import connect
from netboot.kube.leases import KubeLeases
from netboot.kube.nodes import KubeNodes
from netboot.kube.preconditions import KubePreconditions
from netboot.kube.secrets import KubeTokens

FIT_SECONDS = 60.0
"""How long a cluster that was found fit is taken for fit."""
UNFIT_SECONDS = 5.0
"""How long one that was not is not asked again; an operator has just corrected it, maybe."""


class Fitness:
    """Callable; what the self-check said last, while it is fresh. Safe for threads."""

    def __init__(
        self, name: str, preconditions: Preconditions, namespace: str, now: Callable[[], float] = monotonic
    ) -> None:
        self._name, self._preconditions, self._namespace, self._now = name, preconditions, namespace, now
        self._lock = threading.Lock()
        self._until, self._problem = float("-inf"), ""

    def __call__(self) -> None:
        """Return where the cluster may be used.

        Raises:
            ClusterUnavailableError: it may not, or cannot be asked; the words say why and what to do.
        """
        with self._lock:
            if self._now() >= self._until:
                self._problem = ""
                found = refusals(check(self._preconditions, self._namespace))
                if found:
                    words = "; ".join(f"{one.words} (remedy: {one.remedy})" for one in found)
                    self._problem = f"cluster {self._name} is not fit to be joined through us: {words}"
                self._until = self._now() + (UNFIT_SECONDS if self._problem else FIT_SECONDS)
            if self._problem:
                raise ClusterUnavailableError(self._problem)


class Targets(Mapping[str, Target]):
    """By the name of the configuration. A look-up raises ClusterUnavailableError where its files cannot be used."""

    def __init__(self, clusters: Mapping[str, Cluster]) -> None:
        self._clusters, self._made = clusters, dict[str, Target]()
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Target:
        """The cluster of that name, as the issuer's account."""
        cluster = self._clusters[name]
        with self._lock:
            if name not in self._made:
                self._made[name] = reach(name, cluster)[0]
            return self._made[name]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._clusters)

    def __len__(self) -> int:
        """How many."""
        return len(self._clusters)


def reach(name: str, cluster: Cluster) -> tuple[Target, Callable[[], tuple[Finding, ...]]]:
    """A cluster as the issuer's account uses it, and its self-check; nothing is sent yet.

    Raises:
        ClusterUnavailableError: its kubeconfig or authorities cannot be read.
    """
    try:
        authorities = cluster.authority.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not PEM"
        raise ClusterUnavailableError(f"clusters.{name}.authority: {cluster.authority}: {why}") from None
    connection = connect(cluster.issuer)
    preconditions = KubePreconditions(connection, cluster.namespace)
    target = Target(
        name=name,
        endpoints=cluster.endpoints,
        authorities=authorities,
        leases=KubeLeases(connection, cluster.namespace),
        tokens=KubeTokens(connection),
        nodes=KubeNodes(connection),
        fit=Fitness(name, preconditions, cluster.namespace),
    )
    return target, partial(check, preconditions, cluster.namespace)
