"""The approver's loop: watch, decide, approve or deny; a certificate is recorded as one of its boot when it is there,
then its token goes; facts are kept.

Nothing is remembered that must survive: what was approved before a crash comes again as an issued request with the next
look at all of them, is recorded, and its token deleted then. Doing so twice changes nothing.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from netboot.controllers.approver.approvals import Approvals, Facts
from netboot.controllers.approver.asked import Cluster, NotOnRecordError, to_record
from netboot.controllers.approver.backlog import Backlog, Recent, Remembered, Task
from netboot.controllers.approver.counts import Counts
from netboot.controllers.approver.decision import OTHER_BOOT, TOO_MANY, Deny, LeaveAlone, decide, purpose_of, token_of
from netboot.controllers.approver.knowledge import Knowledge
from netboot.controllers.approver.signing import SigningDuration
from netboot.controllers.reflector import AGAIN, Reflector
from netboot.join.certificates import Issued, issued
from netboot.join.errors import ConflictError, NotLeadingError, RefusedError
from netboot.join.ports import Csr
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.ports import Clock
from netboot.logs import about
from netboot.status import DEFECT
from netboot.status.approver import ApproverStatus
from tokens.errors import TooManyError

log = logging.getLogger(__name__)

ROUND_SECONDS = 300.0
WORKERS = 4
GRACE_SECONDS = 1.0
"""Between the certificate and the end of its token: the agent fetches the certificate with the token."""
LOOKS = 4
"""That find a requester's certificate not on record, before it is said to be none of its boot: its request may come at
this moment. While it is there and waits to be recorded (the apiserver may be away) no look is the last."""
ALERT_SECONDS = 3600.0
"""How long the status says what may be an attack."""
DEFECTS, DEFECT_SECONDS = 5, 2 * ROUND_SECONDS
"""Tries in a round of a request that meets a defect; how long the status says so of what is not seen again."""
FOLLOW_SECONDS = 1.0
"""Until a request is looked at again that is another replica's to see to."""
SLOW_SECONDS = 30.0
"""A request that waits longer is said in the status."""


class Approver:
    """Of one cluster. `start` starts threads; `connect` raises ClusterUnavailableError until it can. `leads`: whether
    this replica does; where it does not, its writes raise NotLeadingError, and it keeps what waits for them."""

    def __init__(
        self,
        cluster: str,
        connect: Callable[[], Cluster],
        knowledge: Knowledge,
        facts: Facts,
        clock: Clock,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._cluster, self._connect, self._knowledge = cluster, connect, knowledge
        self._clock, self._leads = clock, leads
        self._api: Cluster | None = None
        self._backlog = Backlog()
        self._reflector = Reflector("certificate requests", self._watch, self._seen, ROUND_SECONDS)
        self._lock = threading.Lock()
        self._counts = Counts()
        self._unavailable = 0
        self._approvals = Approvals(facts, clock)
        self._finished, self._noted, self._awaited = Remembered(), Remembered(), Remembered()
        self._signing = SigningDuration()
        self._alerts, self._defects = Recent(ALERT_SECONDS), Recent(DEFECT_SECONDS)

    def start(self) -> None:
        """Begin; the threads end with the process."""
        named = {"watch": self._reflector.run}
        named |= {f"worker-{number}": self._work for number in range(WORKERS)}
        for name, run in named.items():
            threading.Thread(target=run, name=name, daemon=True).start()

    def stop(self) -> None:
        """Begin nothing new, and wait for nothing; what was not answered is there at the next start."""
        self._reflector.stop()
        self._backlog.close()

    def status(self) -> ApproverStatus:
        """For `/readyz` and metrics."""
        waiting, oldest = len(self._backlog), self._backlog.oldest_seconds()
        with self._lock:
            unavailable = self._unavailable + self._reflector.unavailable
        problem = self._reflector.problem or self._signing.problem or self._alerts.latest() or self._defects.latest()
        if problem is None and oldest > SLOW_SECONDS:
            problem = f"{waiting} certificate requests wait, one for {oldest:.0f} s"
        return ApproverStatus(
            at_ms=self._clock.now_ms(),
            ok=problem is None,
            message=problem or "certificate requests are decided",
            remedy="see the log of the approver; `netboot doctor` names what the cluster lacks",
            decided=self._counts.all(),
            unavailable=unavailable,
            waiting=waiting,
            oldest_seconds=round(oldest, 1),
            followed=not (self._reflector.problem or self._signing.problem),
        )

    # -- watching ---------------------------------------------------------------------------------------------------

    def _watch(self, seconds: float) -> Iterator[Csr]:
        if self._api is None:
            self._api = self._connect()
        return self._api.requests.watch(seconds)

    def _seen(self, csr: Csr) -> None:
        if not csr.decided:
            self._backlog.put(csr)
        elif csr.issued and purpose_of(csr) is not None and csr.uid not in self._finished:
            self._backlog.put(csr)
        else:
            self._backlog.forget(csr)  # which another replica has decided about

    # -- working ----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (task := self._backlog.take()) is not None:
            self._see_to(task)

    def _see_to(self, task: Task) -> None:
        """Whatever goes wrong with one request, the others go on and this one is tried again."""
        with about(request=task.csr.name, user=task.csr.username):
            self._try(task)

    def _try(self, task: Task) -> None:
        try:
            with suppress(ConflictError):  # what it became since comes with the watch
                self._step(task)
        except NotLeadingError:
            self._wait(task)
        except NotOnRecordError as error:
            task.looks += 1
            self._later(task, str(error))
        except CannotTellError as error:
            with self._lock:
                self._unavailable += 1
            self._later(task, str(error))
        except Exception:
            log.exception("certificate request %s: a defect", task.csr.name)
            self._defects.say(task.csr.name, DEFECT)
            if task.failures < DEFECTS:
                self._later(task, DEFECT)
            else:
                self._backlog.done(task)  # the next round brings it again, if it is still there and undecided
        else:
            self._defects.forget(task.csr.name)
            self._backlog.done(task)

    def _later(self, task: Task, why: str) -> None:
        if task.failures in (0, 5):
            log.warning("certificate request %s has to wait: %s", task.csr.name, why)
        self._backlog.again(task, AGAIN.seconds(task.failures + 1))

    def _wait(self, task: Task) -> None:
        """Until whoever leads has seen to it, or this replica leads. One that is gone nobody tells of: of those that
        are there the next round brings every one."""
        if self._backlog.age_seconds(task) > ROUND_SECONDS:
            self._backlog.done(task)
        else:
            self._backlog.again(task, FOLLOW_SECONDS, failed=False)

    def _step(self, task: Task) -> None:
        api, csr = self._api, task.csr
        assert api is not None  # the request came over it
        if not csr.decided:
            self._decide(task, api)
        elif csr.uid not in self._noted:
            self._note(csr, api)
        else:
            self._finish(csr, api)

    def _decide(self, task: Task, api: Cluster) -> None:
        csr = task.csr
        if csr.uid in self._awaited and not self._leads():
            raise NotLeadingError("another replica decides about it")
        records = to_record(csr.credential, self._noted)
        last = task.looks >= LOOKS and not self._backlog.holds(records)  # before it is asked for
        try:
            decision = decide(csr, self._knowledge.of(csr, api.leases, api.certificates))
        except RefusedError as error:  # a damaged Lease: its words say what to do
            decision = Deny(purpose_of(csr) or "client", "NetbootNotAllowed", str(error))
        if isinstance(decision, LeaveAlone):
            log.debug("left alone: %s", decision.why)
        elif isinstance(decision, Deny):
            if decision.reason == OTHER_BOOT and not last:
                raise NotOnRecordError(decision.message)
            self._awaited.add(csr.uid)
            api.requests.deny(csr, decision.reason, decision.message)
            self._counts.add("denied", decision.reason)
            log.warning("denied: %s", decision.message, extra={"fields": {"reason": decision.reason}})
            if decision.reason == TOO_MANY:
                self._alerts.say(csr.name, decision.message)
        else:
            self._awaited.add(csr.uid)
            self._signing.check(csr, decision.purpose, api.certificates)
            api.requests.approve(csr, decision.reason, decision.message)
            self._counts.add("approved", decision.purpose)
            fields = {"purpose": decision.purpose, "machine": decision.machine, "boot": decision.boot}
            log.info("approved: %s", decision.message, extra={"fields": fields})
            if decision.purpose == "client":
                self._approvals.tell_if_possible(csr, decision.machine, decision.boot)

    def _note(self, csr: Csr, api: Cluster) -> None:
        """The certificate is there: it may renew, if it is of its machine's boot. Its token goes a little later."""
        certificate = issued(csr.certificate)
        if certificate is None:
            log.error("the certificate of the request %s cannot be read", csr.name)
        else:
            self._signing.observe(csr, certificate, api.certificates)
            self._record(csr, certificate, api)
        self._noted.add(csr.uid)
        self._backlog.put(csr, GRACE_SECONDS if token_of(csr) is not None else 0.0)

    def _record(self, csr: Csr, certificate: Issued, api: Cluster) -> None:
        try:
            credential = self._knowledge.record(csr, certificate, api.leases, api.certificates)
        except TooManyError as error:  # approved in the moment in which others were
            log.warning("the certificate of the request %s is not recorded: %s", csr.name, error)
            self._alerts.say(csr.name, str(error))
            return
        if credential is not None:
            self._approvals.certified(csr, credential, certificate)

    def _finish(self, csr: Csr, api: Cluster) -> None:
        """Its token has served. Which one is left whoever leads then sees with the next round."""
        token, leads = token_of(csr), self._leads()
        if token is not None and leads:
            api.tokens.delete(token)
        self._approvals.tell_certificate(csr)
        if token is not None and not self._approvals.told(csr):  # approved before a crash, or while the disk refused
            try:
                held = self._knowledge.of(csr, api.leases, api.certificates).credential
            except RefusedError as error:  # its Lease is damaged: nobody will ever know whose boot it was
                log.warning("%s: not recorded: %s", csr.name, error)
                held = None
            if held is not None and held.token_id == token:
                self._approvals.tell(csr, held.machine, held.boot)
        if leads:
            self._finished.add(csr.uid)
