"""What is written down of a boot once it has proven itself: how long it took, counted once, then its proof; and of
machines, when their conditions changed. In the lifecycle's loop, after it has judged.

Boots come from the state, so that one which no judgement came to see is not missed. Each is looked at when something
came of its machine, and when what it waits for is due: journals that are read to their end, a key, the end of a week.
"""

import time
from collections.abc import Callable, Iterable, Sequence

from netboot.controllers.decisions import Snapshots
from netboot.controllers.noticed import Noticed
from netboot.controllers.pieces import Going, in_pieces, unheard
from netboot.controllers.proofs import Proofs
from netboot.controllers.waiting import Waiting
from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.history import Found, HistoryLostError, HistoryWriter, KnownBoot, ProvenBoots, Seen
from netboot.lifecycle.judge import Due
from netboot.lifecycle.objective import measured, measured_phases
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.trace import Trace

MOST = 100
"""Boots looked at with one transaction."""
MOST_MACHINES = 500
"""Whose boots are looked for, or whose changes are written down, with one transaction."""
PIECE = 20
"""Boots between two times that `going` is called: each takes some 0.1 ms of a processor, of which there may be a
three-hundredth."""
SETTLE_SECONDS = 3.0
"""Between learning that a boot is Ready and counting it: a journal whose file looks unchanged is read each second."""
LATE_SECONDS = 60.0
"""A journal that is never read to its end does not keep a boot from being counted for longer, from when there was
something to count: facts may be much older, where nobody took them over."""
AGAIN_SECONDS = 5.0
"""Between two looks at whether journals are read to their end."""
AT_MOST_MS = 7 * 86_400_000
"""After which a boot that was never in service is no longer waited for."""
SWEEP_SECONDS = 3_600.0
"""Between two looks at all that is under way, for those of which nothing comes any more."""
_CLOCK = "monotonic"


class BootRecords:
    """`step` after the lifecycle's. `caught_up()`: whether all that was journalled is in the state."""

    def __init__(
        self,
        boots: ProvenBoots,
        noticed: Noticed,
        history: HistoryWriter,
        snapshots: Snapshots,
        proofs: Proofs,
        caught_up: Callable[[], bool],
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._boots, self._noticed, self._history = boots, noticed, history
        self._snapshots, self._proofs, self._caught_up = snapshots, proofs, caught_up
        self._clock, self._monotonic, self._started_ms = clock, monotonic, clock.now_ms()
        self._told, self._swept, self._due = Waiting(), Waiting(), Waiting()
        """Machines of which something came; those to be looked at besides; boots to be looked at."""
        self._since: dict[str, float] = {}
        """When there was first something to count of each, by the monotonic clock."""
        self._problem = ""
        self._began = self._forgot = False
        self._sweep_at = 0.0

    @property
    def problem(self) -> str:
        """Why something could not be written down last; empty: all could."""
        return self._problem or self._proofs.problem

    def told(self, machines: Iterable[str]) -> None:
        """Something came of these; called by other threads."""
        self._told.tell(machines)

    def step(self, going: Going = unheard, *, watched: bool = True) -> None:
        """Write down what there is. `watched`: what was found since the last step was found as soon as it was so;
        else nobody may have looked for a while. `going` is called again and again."""
        try:
            self._step(going, watched=watched)
        except CannotTellError as error:
            self._problem = str(error)
            self._began = self._began and not isinstance(error, HistoryLostError)
        else:
            self._problem = ""

    def _step(self, going: Going, *, watched: bool) -> None:
        self._snapshots.look()
        if not self._began:
            self._begin()
        elif self._monotonic() >= self._sweep_at:
            self._sweep(())
        if not self._forgot and self._caught_up():
            self._forget(going)
        self._take_proven(going)
        self._note(going, watched=watched)
        self._look(going)

    def _begin(self) -> None:
        """After a start: whose boots may have proven themselves meanwhile; and whose conditions nobody judges any more,
        where a crash kept that from being written down."""
        if names := self._noticed.names():
            self._noticed.put((), self._history.judged() - names)
        self._sweep(self._boots.proven_machines())
        self._began = True

    def _sweep(self, more: Iterable[str]) -> None:
        self._swept.tell(sorted({each.machine for each in self._history.under_way()}.union(more)))
        self._sweep_at = self._monotonic() + SWEEP_SECONDS

    def _forget(self, going: Going) -> None:
        """Machines of which the state has no boot, once it has all; a state that has none at all was lost."""
        if known := self._boots.proven_machines():
            gone = sorted(self._history.machines() - known)
            for begin in range(0, len(gone), MOST_MACHINES):
                self._history.forget(gone[begin : begin + MOST_MACHINES])
                going()
            self._forgot = True

    def _take_proven(self, going: Going) -> None:
        told, left = self._told.take(MOST_MACHINES), list[str]()
        if len(self._due) < MOST:  # who is new does not wait behind all that was there before
            left = self._swept.take(MOST_MACHINES - len(told))
        if not (names := sorted({*told, *left})):
            return
        try:
            proven = self._boots.proven(names)
            going()
            begun = self._history.begin({name: proven.get(name, ()) for name in names})
            going()
            found = {each.machine for each in begun.under_way}.intersection(left)
            now = self._clock.now_ms()
            self._noticed.put((each, now) for each in self._noticed.judged(sorted(found)).values())
            self._keep_decisions(begun.new, going)
        except BaseException:
            self._told.tell(told)
            self._swept.tell(left)
            raise
        self._due.tell(each.boot for each in begun.under_way)

    def _keep_decisions(self, boots: Iterable[str], going: Going) -> None:
        """What was decided for these boots, while what it was decided from is at hand."""
        wanted = dict[str, str]()
        for boot in in_pieces(boots, going, PIECE):
            trace = self._boots.boot(boot)
            if trace is not None and trace.script is not None and trace.script.decision:
                wanted[trace.script.decision] = trace.machine
        unknown = self._history.undecided(wanted)
        found = self._snapshots.decided({digest: wanted[digest] for digest in unknown})
        going()
        if found:
            self._history.keep(found)

    def _note(self, going: Going, *, watched: bool) -> None:
        while True:
            changed, gone = self._noticed.take(MOST_MACHINES)
            if not changed and not gone:
                return
            try:
                seen = self._seen(changed, going, watched=watched)
                self._history.note(changed, gone, seen)
            except BaseException:
                self._noticed.put(changed, gone)
                raise
            self._due.tell(each.boot for each in seen)
            going()

    def _seen(self, changed: Sequence[tuple[Judged, int]], going: Going, *, watched: bool) -> list[Seen]:
        """Boots that are in service, and since when. Of what was so before the boot began, or began while nobody
        looked, it is only known when it was found."""
        found = []
        for judged, at_ms in in_pieces(changed, going, PIECE):
            condition = judged.condition(ConditionType.IN_SERVICE)
            if judged.boot and condition is not None and condition.reason is Reason.IN_SERVICE:
                trace, since = self._boots.boot(judged.boot), condition.since_ms
                ready = trace.phase(Phase.READY) if trace is not None else None
                unseen = not watched and ready is not None and ready.at_ms < self._started_ms <= since
                own = trace is None or since >= trace.started_ms
                found.append(Seen(judged.boot, judged.machine, since if own else at_ms, exact=own and not unseen))
        return found

    def _look(self, going: Going) -> None:
        self._due.pass_time({_CLOCK: self._now_ms()})
        taken = self._due.take(MOST)
        try:
            known = {each.boot: each for each in self._history.under_way(taken)}
            found, ended = Found(), list[tuple[KnownBoot, Trace | None]]()
            for boot in in_pieces(known.values(), going, PIECE):
                trace = self._boots.boot(boot.boot)
                if boot.counted or self._is_all(boot, trace, found):
                    ended.append((boot, trace))
            if found.measured or found.ready or found.counted:
                self._history.count(found)
            again = self._proofs.make(ended, going)
        except BaseException:
            self._due.tell(taken)
            raise
        self._proofs.forget(unknown := set(taken) - known.keys())
        for name in unknown.union(each.boot for each, _ in ended):
            self._since.pop(name, None)
        for name, seconds in again.items():
            self._plan(name, seconds)

    def _is_all(self, boot: KnownBoot, trace: Trace | None, found: Found) -> bool:
        """Add what can be counted of a boot; whether there will be no more."""
        reached = trace.phase(Phase.READY) if trace is not None else None
        served = reached is not None and boot.in_service_ms is not None
        ended = served or boot.over or trace is None or self._clock.now_ms() - trace.last_ms >= AT_MOST_MS
        if (reached is None and not ended) or not self._all_told(boot.boot):
            return False
        if trace is not None and reached is not None:
            self._measure(boot, trace, found)
        if ended:
            found.counted.append(boot.boot)
        return ended

    def _measure(self, boot: KnownBoot, trace: Trace, found: Found) -> None:
        script = trace.script
        known = script is not None and script.arguments is not None  # then its record names the class, or there is none
        hardware = (script.class_name or "") if script and known else self._snapshots.hardware(boot.machine)
        if not boot.ready:
            found.measured += filter(None, [measured(trace, "Ready", hardware, None)])
            found.measured += measured_phases(trace, hardware)
            found.ready.append(boot.boot)
        if boot.exact:
            found.measured += filter(None, [measured(trace, "InService", hardware, boot.in_service_ms)])
            found.measured += measured_phases(trace, hardware, boot.in_service_ms)

    def _all_told(self, boot: str) -> bool:
        """Whether nothing of a boot waits in a journal; or it has waited for too long."""
        now = self._monotonic()
        waited = now - self._since.setdefault(boot, now)
        if waited >= LATE_SECONDS or (waited >= SETTLE_SECONDS and self._caught_up()):
            return True
        wait = SETTLE_SECONDS - waited if waited < SETTLE_SECONDS else AGAIN_SECONDS
        self._plan(boot, min(wait, LATE_SECONDS - waited))
        return False

    def _plan(self, boot: str, seconds: float) -> None:
        self._due.plan(boot, (Due(_CLOCK, self._now_ms() + round(seconds * 1000)),))

    def _now_ms(self) -> int:
        return round(self._monotonic() * 1000)
