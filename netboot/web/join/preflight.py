"""Whether each cluster is fit to be joined: asked in the background, told in words, and the gate of every exchange."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from netboot.join.errors import ClusterUnavailableError
from netboot.join.ports import ClusterAccess
from netboot.join.preconditions import Connected, Finding, refusals
from netboot.lifecycle.errors import LifecycleError
from netboot.status import DEFECT
from netboot.status.join import ClusterStatus, FindingStatus

log = logging.getLogger(__name__)

CHECK_SECONDS = 30.0
RECHECK_SECONDS = 3.0
"""Between checks of a cluster that is not fit, or cannot be asked."""
TRUSTED_SECONDS = 120.0
"""How long what was found stays true of an apiserver that does not answer."""
CLEAN_SECONDS = 60.0


@dataclass(slots=True)
class _Known:
    access: ClusterAccess | None = None
    check: Callable[[], tuple[Finding, ...]] | None = None
    findings: tuple[Finding, ...] = ()
    checked: float = float("-inf")
    problem: str = "it has not been asked yet"
    unclean: bool = False
    """Whether cleaning met a defect, and has not gone through since."""


class CheckedClusters(Mapping[str, ClusterAccess]):
    """The clusters by name. Each of `loops` in a thread of its own; everything else from any thread.

    `clusters`: what reaches each; ClusterUnavailableError where its files cannot be used. `clean`: what is done to a
    cluster once a minute, `clean(access, now_ms)`; raises LifecycleError. None: another replica does it.
    """

    def __init__(
        self,
        clusters: Mapping[str, Callable[[], Connected]],
        now_ms: Callable[[], int],
        clean: Callable[[ClusterAccess, int], None] | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clusters, self._now_ms, self._clean, self._monotonic = clusters, now_ms, clean, monotonic
        self._known = {name: _Known() for name in clusters}
        self._ended = threading.Event()

    def __getitem__(self, name: str) -> ClusterAccess:
        """A cluster.

        Raises:
            KeyError: it is not configured. ClusterUnavailableError: its kubeconfig or authorities cannot be used.
        """
        known = self._known[name]
        if known.access is None:
            raise ClusterUnavailableError(f"cluster {name} cannot be used: {known.problem}")
        return known.access

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def gate(self, name: str) -> None:
        """Let an exchange pass.

        Raises:
            ClusterUnavailableError: the self-check says no, or could not be asked for too long; with its words.
        """
        known = self._known[name]
        bad = refusals(known.findings)
        if bad:
            raise ClusterUnavailableError(f"cluster {name} is not fit: " + "; ".join(finding.words for finding in bad))
        if self._monotonic() - known.checked > TRUSTED_SECONDS:
            raise ClusterUnavailableError(f"cluster {name} cannot be used: {known.problem}")

    def status(self) -> dict[str, ClusterStatus]:
        """By name, for `/readyz`."""
        return {name: self._status(name, known) for name, known in self._known.items()}

    def defects(self) -> list[str]:
        """What keeps no machine from joining, and somebody has to look at; in words."""
        unclean = (name for name, known in self._known.items() if known.unclean)
        return [f"cluster {name} is not cleared of what nobody needs any more: {DEFECT}" for name in unclean]

    def loops(self) -> dict[str, Callable[[], None]]:
        """What goes on until `end`, by name: a cluster that answers slowly holds up neither another nor its own
        checks."""
        steps = {f"preflight-{name}": partial(self.check, name) for name in self._known}
        if self._clean is not None:
            steps |= {f"cleaning-{name}": partial(self.clean, name) for name in self._known}
        return {name: partial(self._repeat, step) for name, step in steps.items()}

    def end(self) -> None:
        """Have the loops return."""
        self._ended.set()

    def _repeat(self, step: Callable[[], float]) -> None:
        while not self._ended.is_set():
            self._ended.wait(step())

    def check(self, name: str) -> float:
        """Ask whether a cluster is fit; the seconds until it is to be asked again."""
        known, problem, wait = self._known[name], "", CHECK_SECONDS
        try:
            if known.access is None:
                access, known.check = self._clusters[name]()
                known.access = replace(access, preflight=partial(self.gate, name))
            assert known.check is not None
            findings = known.check()
            if findings != known.findings:
                _tell(name, findings)
            known.findings, known.checked = findings, self._monotonic()
            if refusals(findings):
                wait = RECHECK_SECONDS
        except ClusterUnavailableError as error:
            problem, wait = str(error), RECHECK_SECONDS
            if problem != known.problem:
                log.error("cluster %s: %s", name, problem)  # noqa: TRY400 - the words are all there is to it
        except Exception:
            problem, wait = "the self-check failed; see the log", RECHECK_SECONDS
            log.exception("defect: the self-check of cluster %s", name)
        known.problem = problem
        return wait

    def clean(self, name: str) -> float:
        """Clear away what nobody needs any more in a cluster; the seconds until it is to be done again."""
        known = self._known[name]
        if self._clean is None or known.access is None:
            return RECHECK_SECONDS
        try:
            self._clean(known.access, self._now_ms())
            known.unclean = False
        except LifecycleError as error:
            log.warning("what nobody needs any more in cluster %s is cleared away later: %s", name, error)
        except Exception:
            log.exception("defect: cluster %s was not cleared of what nobody needs any more", name)
            known.unclean = True
        return CLEAN_SECONDS

    def _status(self, name: str, known: _Known) -> ClusterStatus:
        try:
            self.gate(name)
            fit, message = True, known.problem or "fit"
        except ClusterUnavailableError as error:
            fit, message = False, str(error)
        findings = tuple(
            FindingStatus(name=finding.name, outcome=finding.outcome, words=finding.words, remedy=finding.remedy)
            for finding in known.findings
            if finding.outcome != "ok"
        )
        return ClusterStatus(ok=fit, message=message, findings=findings)


def _tell(name: str, findings: tuple[Finding, ...]) -> None:
    for finding in findings:
        if finding.outcome == "refuse":
            log.error("cluster %s: nothing is issued: %s: %s; %s", name, finding.name, finding.words, finding.remedy)
        elif finding.outcome == "warn":
            log.warning("cluster %s: %s: %s; %s", name, finding.name, finding.words, finding.remedy)
    if not refusals(findings):
        log.info("cluster %s is fit to be joined", name)
