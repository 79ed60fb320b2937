"""Has one replica of several lead: a thread that looks at the Lease, renews it, and lets go of it in the end; and the
check before each act.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from netboot.clock import rfc3339
from netboot.join.errors import ConflictError, ElectionRefusedError, NotLeadingError
from netboot.lifecycle.election import Election, Leases, Times
from netboot.lifecycle.errors import CannotTellError
from netboot.logs import Trouble
from netboot.status import DEFECT, up_ms
from netboot.status.leading import LeaderStatus

log = logging.getLogger(__name__)
JITTER = 0.2
"""Of a pause, at most so much more, as client-go has it (JitterFactor): replicas do not come at the same moment."""
CONFLICT_SECONDS = 0.1
"""After a write that was lost against another one."""
LET_GO_SECONDS = 5.0
"""That are waited for acts in flight before the Lease is let go of; with one left, it ends by itself."""


class Elector:
    """Of one kind of leader. `connect` raises ClusterUnavailableError until it can; `replica`: the name of this one,
    which with a number of this start is its identity. `leads` and `acting` are for every thread."""

    def __init__(
        self,
        what: str,
        replica: str,
        connect: Callable[[], Leases],
        times: Times,
        up_ms: Callable[[], int] = up_ms,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._what, self._replica, self._connect, self._times = what, replica, connect, times
        self._up_ms, self._wall_ms = up_ms, wall_ms
        self._election = Election(f"{replica}_{secrets.token_hex(8)}", times)
        self._leases: Leases | None = None
        self._changed = threading.Condition()
        self._until_ms = 0
        """Until when this replica may act; the one thing that other threads look at."""
        self._acting = 0
        self._heard: tuple[str, int] | None = None
        """What keeps this replica from a leader's work, and when that was said last."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="elector", daemon=True)
        self._said: tuple[bool, str] = (False, "")
        self._since_ms = wall_ms()
        self._vacant_ms = 0
        self._looked_ms = up_ms()
        """When the last look ended, however it did."""
        self._trouble = Trouble(log, "leader", "leader: the Lease can be read again", logging.WARNING)

    @property
    def identity(self) -> str:
        """As the Lease names it."""
        return self._election.identity

    def start(self) -> None:
        """Begin; the thread ends with the process."""
        self._thread.start()

    def leads(self) -> bool:
        """Whether this replica may act at this moment."""
        return self._up_ms() < self._until_ms

    def can(self, problem: str) -> None:
        """What keeps this replica from doing what a leader is there for; "": nothing. To be said each second, from then
        on: who says nothing for the length of a Lease hangs. One that cannot for as long lets another lead."""
        self._heard = (problem, self._up_ms())

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Around one request that changes something.

        Raises:
            NotLeadingError: this replica does not lead at this moment.
        """
        with self._changed:
            if not self.leads():
                raise NotLeadingError(f"this replica ({self._replica}) does not lead {self._what}: {self._who()}")
            self._acting += 1
        try:
            yield
        finally:
            with self._changed:
                self._acting -= 1
                self._changed.notify_all()

    def status(self) -> LeaderStatus:
        """For `/readyz` and metrics."""
        lease, leads = self._election.lease, self.leads()
        unseen_ms, vacant_ms, problem = self._up_ms() - self._looked_ms, self._vacant_ms, self._trouble.problem or ""
        if unseen_ms > self._times.lease_ms:  # whoever led then need not lead any more
            vacant_ms += unseen_ms
            problem = problem or f"the Lease has not been looked at for {unseen_ms / 1000:.0f} s"
        return LeaderStatus(
            replica=self._replica,
            leads=leads,
            leader=lease.holder if lease is not None else "",
            epoch=lease.transitions if lease is not None else 0,
            since_ms=self._since_ms,
            vacant_seconds=round(vacant_ms / 1000, 1) if not leads else 0.0,
            problem=problem,
        )

    def another(self) -> bool:
        """Whether it is known that another replica leads."""
        said = self.status()
        return not said.leads and said.leader not in ("", self.identity) and said.vacant_seconds == 0

    def stop(self) -> None:
        """Lead no more, and let go of the Lease, so that another takes over at once; where that cannot be done in time
        it ends by itself."""
        self._stopping.set()
        quiet = self._quiet()
        if self._thread.ident is None:
            return  # it was never started
        self._thread.join(LET_GO_SECONDS)
        if quiet and not self._thread.is_alive():
            self._let_go()

    def step(self) -> None:
        """Look at the Lease, and write it where that is called for.

        Raises:
            CannotTellError: it cannot be told who leads; it is tried again.
        """
        try:
            if self._leases is None:
                self._leases = self._connect()
            unable = self._unable()
            self._election.can(self._up_ms(), able=not unable)
            if not (self._election.hands_over(self._up_ms()) and self._hand_over(self._leases, unable)):
                self._look(self._leases)
        except (ElectionRefusedError, ConflictError):
            self._election.lost()
            raise
        except CannotTellError:
            self._election.unseen(self._up_ms())
            raise
        finally:
            self._settle()

    def _look(self, leases: Leases) -> None:
        election = self._election
        if not election.leads(self._up_ms()):  # who leads writes over what it wrote last, and need not look
            lease = leases.read()
            election.saw(lease, self._up_ms())
        wanted = election.wanted(self._up_ms())
        if wanted is None:
            return
        at = rfc3339(self._wall_ms(), "microseconds")
        acquired = wanted.acquired if election.lease and election.lease.holder == election.identity else at
        sent_ms = self._up_ms()
        written = leases.write(wanted._replace(acquired=acquired, renewed=at))
        election.wrote(written, sent_ms, self._up_ms())

    def _unable(self) -> str:
        if self._heard is None:
            return ""
        problem, at_ms = self._heard
        silent_ms = self._up_ms() - at_ms
        return problem if silent_ms < self._times.lease_ms else f"nothing was heard of it for {silent_ms / 1000:.0f} s"

    def _hand_over(self, leases: Leases, why: str) -> bool:
        """Let another lead; whether acts in flight let it."""
        if not self._quiet():
            return False  # it is renewed, and tried again
        wanted = self._election.release()
        if wanted is not None:
            log.warning("this replica lets another lead %s, for it cannot do the work: %s", self._what, why)
            self._election.saw(leases.write(wanted), self._up_ms())
        return True

    def _quiet(self) -> bool:
        """Begin no act, and wait for those in flight; whether they ended in time."""
        with self._changed:
            self._until_ms = 0
            return self._changed.wait_for(lambda: self._acting == 0, LET_GO_SECONDS)

    def _settle(self) -> None:
        """Make known what is so now, and say what is new."""
        now = self._up_ms()
        with self._changed:
            until = self._election.until_ms()
            self._until_ms = until if until is not None and not self._stopping.is_set() else 0
        self._vacant_ms, self._looked_ms = self._election.vacant_ms(now), now
        self._say()

    def _say(self) -> None:
        lease = self._election.lease
        said = (self.leads(), lease.holder if lease is not None else "")
        if said == self._said:
            return
        led, self._said, self._since_ms = self._said[0], said, self._wall_ms()
        fields = {"epoch": self._election.epoch, "leader": said[1]}
        if said[0]:
            log.info("this replica leads %s, epoch %d", self._what, fields["epoch"], extra={"fields": fields})
        elif led:
            log.warning("this replica leads %s no longer: %s", self._what, self._who(), extra={"fields": fields})
        else:
            log.info("%s: %s", self._what, self._who(), extra={"fields": fields})

    def _who(self) -> str:
        lease = self._election.lease
        if self._stopping.is_set():
            return "it is stopping"
        if lease is None:
            return "who leads cannot be told"
        if lease.holder == self.identity:
            return "its Lease was not renewed in time"
        return f"{lease.holder} leads, epoch {lease.transitions}" if lease.holder else "nobody leads"

    def _let_go(self) -> None:
        wanted = self._election.release()
        if wanted is None or self._leases is None:
            return
        with suppress(CannotTellError, ConflictError):
            self._leases.write(wanted)
            log.info("this replica lets go of %s", self._what)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.step()
                self._trouble.note(None)
            except ConflictError:
                self._stopping.wait(CONFLICT_SECONDS)  # and then it is read
                continue
            except CannotTellError as error:
                self._trouble.note(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look is tried
                self._trouble.note(DEFECT, error)
            share = 1 + JITTER * secrets.randbelow(1000) / 1000
            self._stopping.wait(share * self._times.retry_ms / 1000)
