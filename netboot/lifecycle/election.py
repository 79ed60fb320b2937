"""Who of several replicas leads, by a Lease of `coordination.k8s.io/v1`: the rules, pure.

They are those of client-go's leaderelection (https://pkg.go.dev/k8s.io/client-go/tools/leaderelection): who leads
writes the Lease again and again; who follows looks when it was written last, by its own clock; what clocks of others
say counts for nothing. Four are otherwise:

- Who leads counts from before a renewal was sent, and acts for `renew_ms` from then; who follows counts from after it
  was read, and waits for `lease_ms`, which is longer. So no two believe that they lead, as long as their clocks go at
  rates that differ by less than that.
- Any write to the Lease counts as a renewal, not only one that alters its `spec`.
- A Lease that names no holder is free at once only where the one before has said that it let go. Any other was wiped
  or made anew, while somebody may lead: it is waited for as if somebody had just renewed it.
- Who has not been able to do a leader's work for `lease_ms` lets go, and takes a Lease only after twice the wait of
  others: where nobody is able, one leads all the same, and lets go again after `RESORT` durations.

A Lease alone fences nothing (https://kubernetes.io/blog/2016/01/simple-leader-election-with-kubernetes/): a request
that was sent in time may arrive late. Each act has its own precondition: docs/ha.md.
"""

from typing import NamedTuple, Protocol

LONGEST_SECONDS = 300
"""Of a Lease; one that says more was written by somebody else, and is waited for no longer than this."""
UNABLE_WAITS = 2
"""Times the wait of others, of one that cannot do a leader's work: who can is first."""
RESORT = 20
"""Durations of a Lease for which one that is unable leads where nobody else took it; then others may again."""


class Times(NamedTuple):
    """Milliseconds. `lease_ms`: how long others wait after the last renewal; `renew_ms`: how long after the sending of
    a renewal whoever leads acts; `retry_ms`: between two looks, or renewals."""

    lease_ms: int
    renew_ms: int
    retry_ms: int


class Lease(NamedTuple):
    """What a Lease says. `version`: of the object, any write makes another; `uid`: of it, one that is made anew has
    another. `holder`: who leads, "": nobody; `transitions`: how often it became somebody else; `seconds`: how long
    others wait, 0: it does not say; `released`: who let go of it last, "": nobody has. `acquired`, `renewed`: times of
    day as the holder has them, for people alone."""

    uid: str
    version: str
    holder: str = ""
    transitions: int = 0
    seconds: int = 0
    released: str = ""
    acquired: str = ""
    renewed: str = ""

    @property
    def free(self) -> bool:
        """Whether its holder let go of it, so that nobody need wait."""
        return not self.holder and bool(self.released)


class Leases(Protocol):
    """The Lease of one kind of leader: `netboot.kube.elections`."""

    def read(self) -> Lease:
        """As it is; raises ElectionRefusedError: it is not there, or not for us; ClusterUnavailableError."""
        ...

    def write(self, lease: Lease) -> Lease:
        """Over that very version; what it is then. Raises ConflictError, and as `read`."""
        ...


class Election:
    """As one replica sees it. `identity` is of one start of one process, and of no other. `now_ms` is everywhere this
    machine's clock that nobody sets and that goes on while the machine is suspended (CLOCK_BOOTTIME). One thread's."""

    def __init__(self, identity: str, times: Times) -> None:
        self.identity, self._times = identity, times
        self.lease: Lease | None = None
        """As it was read, or written, last; None: it cannot be told."""
        self._seen_ms = 0
        self._transitions: dict[str, int] = {}
        """By uid, the most that were seen: an epoch is never used twice, also where somebody wiped the Lease."""
        self._renewed_ms: int | None = None
        self._vacant_ms: int | None = None
        self._unable_ms: int | None = None
        """Since when this replica cannot do a leader's work."""
        self._resort_ms: int | None = None
        """Since when it leads though it cannot."""

    @property
    def epoch(self) -> int:
        """Of whoever leads: grows with each; 0: nobody ever has."""
        return self.lease.transitions if self.lease is not None else 0

    def leads(self, now_ms: int) -> bool:
        """Whether this replica may act at this moment."""
        return self._renewed_ms is not None and now_ms - self._renewed_ms < self._times.renew_ms

    def until_ms(self) -> int | None:
        """Until when it may, unless it renews; None: it does not lead."""
        return None if self._renewed_ms is None else self._renewed_ms + self._times.renew_ms

    def saw(self, lease: Lease, now_ms: int) -> None:
        """The Lease, as it was read; `now_ms`: after the answer."""
        before = self.lease
        if before is None or (before.uid, before.version) != (lease.uid, lease.version):
            self._seen_ms = now_ms
        self._keep(lease)
        if lease.holder != self.identity:
            self._renewed_ms = None

    def wanted(self, now_ms: int) -> Lease | None:
        """What is to be written over the Lease that was seen, of that very version; None: nothing."""
        lease = self.lease
        if lease is None:
            return None
        mine = lease.holder == self.identity
        unable = self._unable(now_ms)
        waits = self._waits_ms(lease) * (UNABLE_WAITS if unable else 1)
        if not (mine or (lease.free and not unable) or now_ms - self._seen_ms >= waits):
            return None
        transitions = lease.transitions if mine else self._transitions.get(lease.uid, lease.transitions) + 1
        seconds = -(-self._times.lease_ms // 1000)
        return lease._replace(holder=self.identity, transitions=transitions, seconds=seconds, released="")

    def wrote(self, lease: Lease, sent_ms: int, now_ms: int) -> None:
        """The Lease with this replica as its holder, as it is now; `sent_ms`: before the request, `now_ms`: after."""
        mine = self.lease is not None and self.lease.holder == self.identity
        if not mine and self._unable(now_ms):
            self._resort_ms = now_ms
        self._keep(lease)
        self._seen_ms, self._renewed_ms = now_ms, sent_ms

    def lost(self) -> None:
        """It cannot be told who leads: the Lease is not there, not for this account, or was written by somebody else.
        An API server that does not answer is none of these: who leads goes on for as long as `renew_ms` lasts."""
        self.lease, self._renewed_ms = None, None

    def can(self, now_ms: int, *, able: bool) -> None:
        """Whether this replica can do what a leader is there for."""
        if able:
            self._unable_ms, self._resort_ms = None, None
        elif self._unable_ms is None:
            self._unable_ms = now_ms

    def unseen(self, now_ms: int) -> None:
        """The API server did not answer: what cannot be done meanwhile says nothing of this replica."""
        if self._unable_ms is not None:
            self._unable_ms = now_ms

    def hands_over(self, now_ms: int) -> bool:
        """Whether it is to let go of a Lease by which it leads, for it cannot do the work."""
        resort = self._resort_ms is not None and now_ms - self._resort_ms < RESORT * self._times.lease_ms
        return self.leads(now_ms) and self._unable(now_ms) and not resort

    def release(self) -> Lease | None:
        """Lead no more; what is to be written then, for others to take over at once; None: this replica did not lead by
        the Lease that was seen last."""
        lease, self._renewed_ms, self._resort_ms = self.lease, None, None
        if lease is None or lease.holder != self.identity:
            return None
        return lease._replace(holder="", released=self.identity)

    def vacant_ms(self, now_ms: int) -> int:
        """For how long nobody has been seen to lead: after the last holder's time, or since there is no telling; 0:
        somebody leads, as far as can be told."""
        lease = self.lease
        held = lease is not None and bool(lease.holder) and now_ms - self._seen_ms < self._waits_ms(lease)
        if held or self.leads(now_ms):
            self._vacant_ms = None
        elif self._vacant_ms is None:
            self._vacant_ms = now_ms
        return 0 if self._vacant_ms is None else now_ms - self._vacant_ms

    def _unable(self, now_ms: int) -> bool:
        return self._unable_ms is not None and now_ms - self._unable_ms >= self._times.lease_ms

    def _waits_ms(self, lease: Lease) -> int:
        return max(self._times.lease_ms, 1000 * min(lease.seconds, LONGEST_SECONDS))

    def _keep(self, lease: Lease) -> None:
        self.lease = lease
        self._transitions = {lease.uid: max(self._transitions.get(lease.uid, 0), lease.transitions)}
