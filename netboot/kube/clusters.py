"""The clusters of a site as join uses them, each connected to when first needed and checked before use."""

import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import monotonic

from netboot import credentials
from netboot.config_nodes import Cluster
from netboot.join.errors import ClusterUnavailableError
from netboot.join.ports import ClusterAccess
from netboot.join.preconditions import Connected, check, refusals
from netboot.join.self_check import Preconditions
from netboot.kube.connection import connect
from netboot.kube.leases import KubeLeases
from netboot.kube.nodes import KubeNodes
from netboot.kube.preconditions import KubePreconditions
from netboot.kube.secrets import KubeTokens

FIT_SECONDS = 60.0
"""How long a cluster that was found fit is taken for fit."""
UNFIT_SECONDS = 5.0
"""How long one that was not is not asked again; an operator has just corrected it, maybe."""


class Preflight:
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
                unmet = refusals(check(self._preconditions, self._namespace))
                if unmet:
                    faults = "; ".join(f"{finding.words} (remedy: {finding.remedy})" for finding in unmet)
                    self._problem = f"cluster {self._name} is not fit to be joined through us: {faults}"
                self._until = self._now() + (UNFIT_SECONDS if self._problem else FIT_SECONDS)
            if self._problem:
                raise ClusterUnavailableError(self._problem)


class Clusters(Mapping[str, ClusterAccess]):
    """By the name of the configuration. A look-up raises ClusterUnavailableError where its files cannot be used."""

    def __init__(self, clusters: Mapping[str, Cluster]) -> None:
        self._clusters, self._reached = clusters, dict[str, ClusterAccess]()
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> ClusterAccess:
        """The cluster of that name, as the issuer's account."""
        cluster = self._clusters[name]
        with self._lock:
            if name not in self._reached:
                self._reached[name] = reach(name, cluster)[0]
            return self._reached[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._clusters)

    def __len__(self) -> int:
        return len(self._clusters)


def reach(name: str, cluster: Cluster) -> Connected:
    """A cluster as the issuer's account uses it, and its self-check; nothing is sent yet.

    Raises:
        ClusterUnavailableError: its kubeconfig or authorities cannot be read.
    """
    try:
        authorities = credentials.read(cluster.authority).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not PEM"
        raise ClusterUnavailableError(f"clusters.{name}.authority: {cluster.authority}: {why}") from None
    connection = connect(cluster.issuer)
    preconditions = KubePreconditions(connection, cluster.namespace)
    access = ClusterAccess(
        name=name,
        endpoints=cluster.endpoints,
        authorities=authorities,
        leases=KubeLeases(connection, cluster.namespace),
        tokens=KubeTokens(connection),
        nodes=KubeNodes(connection),
        preflight=Preflight(name, preconditions, cluster.namespace),
        clock_ahead_ms=preconditions.clock_ahead_ms,
        server_version=preconditions.server_version,
    )
    return access, partial(check, preconditions, cluster.namespace)
