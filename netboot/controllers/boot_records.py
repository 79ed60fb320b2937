"""What is written down of a boot once it has proven itself: how long it took, counted once; and of machines, when their
conditions changed. In the lifecycle's loop, after it has judged.

Boots come from the state, so that one which no judgement came to see is not missed. Each is looked at until it was seen
in service, or a later boot of its machine has proven itself.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice

from images.values.backoff import Backoff
from netboot.controllers.decisions import Snapshots
from netboot.controllers.lifecycle import LifecycleController
from netboot.controllers.pieces import Going, unheard
from netboot.controllers.proofs import Prover
from netboot.lifecycle.conditions import Judged, JudgedMachines
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.history import Found, HistoryWriter, KnownBoot, ProvenBoots
from netboot.lifecycle.objective import measured
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.trace import Trace
from netboot.status import LifecycleStatus

MOST = 100
"""Boots looked at with one transaction."""
MOST_MACHINES = 500
"""Whose boots are looked for at once; after a start it is all that have any."""
LOOKS = Backoff(first=0.5, longest=60.0)
"""Between two looks at a boot of which nothing is heard by the way."""
SETTLE_SECONDS = 3.0
"""Between learning that a boot is Ready and counting it: a journal whose file looks unchanged is read each second."""
LATE_SECONDS = 60.0
"""A journal that is never read to its end does not keep a boot from being counted for longer."""
AT_MOST_MS = 7 * 86_400_000
"""After which a boot that was never in service is no longer waited for."""


class Noticed(JudgedMachines):
    """What was found of machines, as `kept` keeps it; what changed is handed on besides, until it is taken."""

    def __init__(self, kept: JudgedMachines, clock: Clock) -> None:
        self._kept, self._clock = kept, clock
        self._changed: dict[str, tuple[Judged, int]] = {}
        self._gone: set[str] = set()

    def judged(self, names: Sequence[str]) -> dict[str, Judged]:
        return self._kept.judged(names)

    def names(self) -> set[str]:
        return self._kept.names()

    def seen_time(self) -> dict[str, int]:
        return self._kept.seen_time()

    def keep(self, judged: Sequence[Judged], forget: Collection[str], seen_time: Mapping[str, int]) -> None:
        self._kept.keep(judged, forget, seen_time)
        self.put(((each, self._clock.now_ms()) for each in judged), forget)

    def put(self, judged: Iterable[tuple[Judged, int]], gone: Iterable[str] = ()) -> None:
        """Hand these on (again)."""
        self._gone.update(gone)
        self._changed |= {each.machine: (each, at_ms) for each, at_ms in judged}

    def take(self) -> tuple[list[tuple[Judged, int]], set[str]]:
        """What changed since this was asked last, and when that was found; and who is judged no more."""
        taken = list(self._changed.values()), self._gone
        self._changed, self._gone = {}, set()
        return taken


class AndRecords:
    """The lifecycle's loop with what is written down of it."""

    def __init__(self, lifecycle: LifecycleController, records: "BootRecords") -> None:
        self._lifecycle, self._records = lifecycle, records

    def told(self, machines: Iterable[str]) -> None:
        """Something came of these; called by other threads."""
        names = set(machines)
        self._records.told(names)
        self._lifecycle.told(names)

    def step(self, going: Going = unheard) -> bool:
        """Judge, then write down; whether there are more to be judged."""
        more = self._lifecycle.step(going)
        self._records.step()
        return more

    def status(self) -> LifecycleStatus:
        """The lifecycle's; where that is in order, what keeps records from being written."""
        status = self._lifecycle.status()
        return status.model_copy(update={"problem": status.problem or self._records.problem})


class BootRecords:
    """`step` after the lifecycle's. `caught_up()`: whether all that was journalled is in the state."""

    def __init__(
        self,
        boots: ProvenBoots,
        noticed: Noticed,
        history: HistoryWriter,
        snapshots: Snapshots,
        prover: Prover,
        caught_up: Callable[[], bool],
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._boots, self._noticed, self._history = boots, noticed, history
        self._snapshots, self._prover, self._caught_up = snapshots, prover, caught_up
        self._clock, self._monotonic = clock, monotonic
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}
        self._looks: dict[str, int] = {}
        self._ready_since: dict[str, float] = {}
        """When each was first seen to be Ready, by the monotonic clock."""
        self._began = False
        self.problem = ""
        """Why nothing could be written down last; empty: it could."""

    def told(self, machines: Iterable[str]) -> None:
        """Something came of these; called by other threads."""
        with self._lock:
            self._told.update(machines)

    def step(self) -> None:
        """Write down what there is."""
        try:
            self._step()
        except CannotTellError as error:
            self.problem = str(error)
        else:
            self.problem = ""

    def _step(self) -> None:
        self._snapshots.look()
        if not self._began:
            self._begin()
        self._take_proven()
        changed, gone = self._noticed.take()
        if changed or gone:
            try:
                self._history.note(changed, gone)
            except BaseException:
                self._noticed.put(changed, gone)
                raise
            self._hurry(each.boot for each, _ in changed if each.boot in self._due)
        now = self._monotonic()
        due = [boot for boot, at in self._due.items() if at <= now][:MOST]
        if due:
            self._look(due, now)

    def _begin(self) -> None:
        """After a start: boots that proved themselves meanwhile, what is still under way, and what was found of its
        machines and perhaps not written down."""
        machines = self._boots.proven_machines()
        self._history.forget(self._history.machines() - machines)
        self.told(machines)
        under_way = self._history.under_way()
        names, now = sorted({each.machine for each in under_way}), self._clock.now_ms()
        self._noticed.put((each, now) for each in self._noticed.judged(names).values())
        self._hurry(each.boot for each in under_way)
        self._began = True

    def _take_proven(self) -> None:
        with self._lock:
            told = set(islice(self._told, MOST_MACHINES))
            self._told -= told
        if not told:
            return
        try:
            proven = self._boots.proven(sorted(told))
            begun = self._history.begin(proven) if proven else []
        except BaseException:
            self.told(told)
            raise
        if begun:
            self._keep_decisions(begun)
            machines = {each.machine for each in self._history.under_way(begun)}
            others = self._history.under_way(list(self._due))
            self._hurry([*begun, *(each.boot for each in others if each.machine in machines)])

    def _keep_decisions(self, begun: Iterable[str]) -> None:
        """What was decided for these boots, while what it was decided from is at hand."""
        traces = filter(None, map(self._boots.boot, begun))
        wanted = {trace.script.decision: trace.machine for trace in traces if trace.script and trace.script.decision}
        unknown = self._history.undecided(wanted)
        found = self._snapshots.decided({digest: wanted[digest] for digest in unknown})
        if found:
            self._history.keep(found)

    def _hurry(self, boots: Iterable[str]) -> None:
        for boot in boots:
            self._due[boot] = self._monotonic()
            self._looks.pop(boot, None)

    def _look(self, due: Sequence[str], now: float) -> None:
        found = Found()
        known = {each.boot: each for each in self._history.under_way(due)}
        for boot in due:
            if boot not in known or self._settled(known[boot], found):
                found.done.append(boot)
        self._history.count(found)
        for boot in due:
            self._looks[boot] = self._looks.get(boot, 0) + 1
            self._due[boot] = now + LOOKS.bound(self._looks[boot])
        for boot in found.done:
            del self._due[boot], self._looks[boot]
            self._ready_since.pop(boot, None)

    def _all_told(self, trace: Trace) -> bool:
        """Whether nothing of a boot that is Ready waits in a journal; or it has waited for too long."""
        since = self._ready_since.setdefault(trace.boot, self._monotonic())
        settled = self._monotonic() - since >= SETTLE_SECONDS and self._caught_up()
        return settled or self._clock.now_ms() - trace.last_ms >= LATE_SECONDS * 1000

    def _settled(self, boot: KnownBoot, found: Found) -> bool:
        """Add what can be written down of a boot; whether there will be no more."""
        trace = self._boots.boot(boot.boot)
        if trace is None:
            return True
        hardware = self._snapshots.hardware(boot.machine)
        reached, now = trace.phase(Phase.READY), self._clock.now_ms()
        if reached is not None and not self._all_told(trace):
            return False
        if reached is not None and not boot.ready:
            found.measured += filter(None, [measured(trace, "Ready", hardware, None)])
            found.ready.append(boot.boot)
        served = reached is not None and boot.in_service_ms is not None
        if served:
            found.measured += filter(None, [measured(trace, "InService", hardware, boot.in_service_ms)])
        if not (served or boot.over or now - trace.last_ms >= AT_MOST_MS):
            return False
        if (proof := self._prover.proof(trace, boot.in_service_ms)) is not None:
            found.proofs[boot.boot, boot.machine] = proof
        return True
