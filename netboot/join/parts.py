"""What an exchange works with: ports, keys, clock and chance, all given from outside."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from netboot.join.errors import RefusedError
from netboot.join.ports import Enrolments, Leases, Nodes, Tokens
from netboot.lifecycle.decide import View
from netboot.lifecycle.events import EventRecord
from tokens.sealed import Keyset


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster, as we use it and as its nodes are told of it. `fit` raises ClusterUnavailableError where it is not."""

    name: str
    endpoints: tuple[str, ...]
    authorities: str
    """PEM."""
    leases: Leases
    tokens: Tokens
    nodes: Nodes
    fit: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Parts:
    """`clusters`: a look-up may raise ClusterUnavailableError; `view()` raises NotReadyError, `keyset()` and
    `nonce_keyset()` another CannotTellError; `belongs(boot, machine)`: whether that boot is one of that machine;
    `journal` returns when the record is durable; `random(n)`: bytes nobody can foresee; `choice`: one character of
    these, likewise."""

    site: str
    clusters: Mapping[str, Target]
    view: Callable[[], View]
    enrolments: Enrolments
    keyset: Callable[[], Keyset]
    nonce_keyset: Callable[[], Keyset]
    """Of the nonces of boot windows, which boot servers seal too: nothing else is ever opened with it."""
    belongs: Callable[[str, str], bool]
    journal: Callable[[EventRecord], None]
    now_ms: Callable[[], int]
    random: Callable[[int], bytes]
    choice: Callable[[str], str]
    token_seconds: int
    addresses_attest: bool = False

    def target(self, cluster: str, machine: str) -> Target:
        """The cluster of a machine.

        Raises:
            RefusedError: the configuration does not have it. ClusterUnavailableError: it cannot be used now.
        """
        found = self.clusters.get(cluster)
        if found is None:
            raise RefusedError(
                f"{machine} is of cluster {cluster}, which this service does not know: add `clusters.{cluster}` to "
                "netboot.yaml"
            )
        return found
