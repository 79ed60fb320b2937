"""The clusters of a site for operators' tokens: each reached when first needed, and checked before a token is made.

The processes of join check all the time (`netboot.web.join.fitness`); operators ask rarely, so here it is on demand.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from netboot.config import Cluster
from netboot.join.errors import ClusterUnavailableError
from netboot.join.parts import Target
from netboot.join.preconditions import Finding, refusals

FIT_SECONDS = 60.0
"""How long a cluster that was found fit is taken for fit."""
UNFIT_SECONDS = 5.0
"""How long one that was not is not asked again; an operator has just corrected it, maybe."""

Reached = tuple[Target, Callable[[], Sequence[Finding]]]


class OnDemand:
    """By the names of the configuration. `reach` raises ClusterUnavailableError. Safe for threads."""

    def __init__(
        self,
        clusters: Mapping[str, Cluster],
        reach: Callable[[str, Cluster], Reached],
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._clusters, self._reach, self._now = clusters, reach, now
        self._lock = threading.Lock()
        self._reached: dict[str, Reached] = {}
        self._said: dict[str, tuple[float, str]] = {}

    def target(self, name: str) -> Target | None:
        """The cluster; None for one that is not configured.

        Raises:
            ClusterUnavailableError: its files cannot be used.
        """
        return self._at(name)[0] if name in self._clusters else None

    def gate(self, name: str) -> None:
        """Return where tokens may be made.

        Raises:
            ClusterUnavailableError: they may not, or it cannot be asked; the words say why and what to do.
        """
        ask = self._at(name)[1]
        with self._lock:
            until, problem = self._said.get(name, (float("-inf"), ""))
            if self._now() >= until:
                found = refusals(ask())
                words = "; ".join(f"{one.words} (remedy: {one.remedy})" for one in found)
                problem = f"cluster {name} is not fit to be joined through us: {words}" if found else ""
                self._said[name] = (self._now() + (UNFIT_SECONDS if problem else FIT_SECONDS), problem)
        if problem:
            raise ClusterUnavailableError(problem)

    def _at(self, name: str) -> Reached:
        with self._lock:
            if name not in self._reached:
                self._reached[name] = self._reach(name, self._clusters[name])
            return self._reached[name]
